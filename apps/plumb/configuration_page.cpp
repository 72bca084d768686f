// The tables of docs/configuration.md.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/study/config.h"
#include "sections.h"
#include "variants.h"

namespace plumb::app {
namespace {

using Keys = std::vector<KeyList::Key>;

constexpr std::string_view kTableHead = "| key | default | meaning |";

/// "Norms" → "norms"; "BLEU tokenizers" stays.
std::string within_sentence(std::string title) {
  if (title.size() > 1 && std::isupper(static_cast<unsigned char>(title[1])) == 0)
    title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title[0])));
  return title;
}

/// Where `word` or its plural stands in the text as a word of its own; npos if nowhere.
size_t find_word(const std::string& text, const std::string& word, size_t& length) {
  const auto letter = [&](size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    length = word.size() + (at + word.size() < text.size() && text[at + word.size()] == 's' ? 1 : 0);
    if ((at == 0 || text[at - 1] == ' ') && !letter(at + length)) return at;
  }
  return std::string::npos;
}

/// The text with a link to the section on variants of a kind: at the kind's name, or at the end.
std::string with_link(const std::string& text, const VariantKind& kind) {
  const std::string title = within_sentence(kind.about.title);
  for (const std::string& name : {kind.name, title.substr(0, title.size() - 1)}) {
    size_t length = 0;
    const size_t at = find_word(text, name, length);
    if (at != std::string::npos)
      return fmt::format("{}[{}]({}){}", text.substr(0, at), text.substr(at, length), kind.link(),
                         text.substr(at + length));
  }
  return fmt::format("{}; see [{}]({})", text, title, kind.link());
}

std::string meaning_of(const KeyList::Key& key, const std::vector<VariantKind>& kinds) {
  KeyList::Key linked = key;
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](const VariantKind& k) { return k.name == key.domain.kind; });
  if (kind != kinds.end()) {
    linked.meaning = with_link(key.meaning, *kind);
    for (const Variant& variant : kind->variants) std::erase(linked.domain.choices, variant.name);
    if (!linked.domain.choices.empty()) linked.meaning += "; or `" + join(linked.domain.choices) + '`';
    linked.domain.choices.clear();
  }
  return whole_meaning(linked);
}

/// The keys of each table, by its heading.
std::map<std::string, Keys> tables() {
  std::map<std::string, Keys> all;
  for (const ConfigurationReader reader : {ConfigurationReader::finetuning, ConfigurationReader::study}) {
    for (const ConfigurationSection& section : sections_of(reader)) {
      std::string heading = section.repeated ? "[[" + section.name + "]]" : '[' + section.name + ']';
      if (section.name == "data") heading += reader == ConfigurationReader::study ? " of a study" : " of a run";
      Keys& own = all[heading];
      if (!own.empty()) continue;  // shared by both
      for (KeyList::Key key : section.keys) {
        const size_t dot = key.name.rfind('.');
        if (dot == std::string::npos) {
          own.push_back(key);
          continue;
        }
        Keys& nested = all[fmt::format("[{}.{}]", section.name, key.name.substr(0, dot))];
        key.name.erase(0, dot + 1);
        nested.push_back(key);
      }
    }
  }
  return all;
}

/// What follows the head of a table.
std::string rows_of(const Keys& keys, const std::vector<VariantKind>& kinds) {
  std::string text = "| --- | --- | --- |\n";
  for (const KeyList::Key& key : keys) {
    const std::string value = key.value.empty() ? "none" : '`' + key.value + '`';
    text += fmt::format("| `{}` | {} | {} |\n", key.name, value, meaning_of(key, kinds));
  }
  return text;
}

}  // namespace

std::string configuration_page(const std::string& page) {
  const std::vector<VariantKind> kinds = variant_kinds();
  const std::map<std::string, Keys> known = tables();
  std::map<std::string, int> written;
  std::string text, heading;
  const std::vector<std::string> lines = split(page, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with('#')) heading = lines[i].starts_with("### [") ? lines[i].substr(4) : "";
    text += lines[i] + (i + 1 < lines.size() ? "\n" : "");
    if (heading.empty() || lines[i] != kTableHead) continue;
    const auto section = known.find(heading);
    if (section == known.end()) throw Error("no section of a configuration is called " + heading);
    ++written[heading];
    while (i + 1 < lines.size() && lines[i + 1].starts_with('|')) ++i;
    text += rows_of(section->second, kinds);
  }
  for (const auto& [name, keys] : known) {
    const bool of_variants = name.find('.') != std::string::npos && !name.starts_with("[[");  // in docs/variants.md
    if (keys.empty() || of_variants || written[name] == 1) continue;
    const auto part = study_parts().entries().find(name.substr(1, name.size() - 2));
    if (written[name] > 0 || part == study_parts().entries().end())
      throw Error("the page has no table, or several, under the heading ### " + name);
    std::string summary = part->second.summary;
    summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
    text += fmt::format("\n### {}\n{}.\n\n{}\n", name, summary, kTableHead) + rows_of(keys, kinds);
  }
  return text;
}

}  // namespace plumb::app
