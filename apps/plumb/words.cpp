#include "words.h"
#include "plumb/base/contains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "completion/candidates.h"
#include "plumb/base/error.h"
#include "plumb/base/glossary.h"
#include "plumb/base/text.h"

namespace plumb::app {
namespace {

using Keys = std::vector<ManualKey>;

/// The part of a name after its last dot.
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// "train.steps" for "--steps" or "--max-steps"; empty if no key is called so.
std::string key_like(const std::string& option, const Keys& keys) {
  std::string name = option.substr(2);
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string own(name_in_plumb(name));
  for (const ManualKey& key : keys) {
    const std::string last = last_part(key.name);
    if (last == name || (!own.empty() && last == own)) return key.name;
  }
  return {};
}

/// Throws UsageError with the nearest option if a word is an option that the verb does not have.
void check_options(const ManualVerb& verb, const std::vector<std::string>& words, const Keys& keys) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {  // no options after "--"
    const std::string name = words[i].substr(0, words[i].find('='));
    if (!name.starts_with('-')) continue;
    if (const ManualOption* option = verb.find_option(name)) {
      if (name == words[i] && option->takes_value()) ++i;  // its value may look like an option
      continue;
    }
    if (!name.starts_with("--") || std::isalnum(static_cast<unsigned char>(name[2])) == 0) continue;
    const std::string key = verb.find_option("--set") != nullptr ? key_like(name, keys) : "";
    if (!key.empty()) throw UsageError("unknown option '" + name + "'", fmt::format("it is a key: --set {}=…", key));
    std::vector<std::string> names;
    for (const ManualOption& option : verb.options) {
      for (const std::string& known : option.names)
        if (known.starts_with("--")) names.push_back(known);
    }
    throw UsageError("unknown option '" + name + "'", did_you_mean(name, names, "--help lists the options"));
  }
}

/// The texts of all kinds of variants or of one, "alarm" or "alarms"; empty if the words are others.
std::string listed(const std::vector<ManualList>& lists, const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (const ManualList& list : lists) {
    const bool named = words.size() == 1 && (words[0] == list.kind || words[0] == list.kind + "s");
    if (words.empty() || named) texts.push_back(text_of(list));
  }
  return join(texts, "\n");
}

/// Follows the words to the verb that they name, and removes these. Throws UsageError with the nearest verb or option
/// if a word is neither.
const ManualVerb& verb_in(const Manual& manual, std::vector<std::string>& words) {
  const ManualVerb* verb = &manual.program;
  while (!words.empty() && !words[0].starts_with('-') && !verb->verbs.empty()) {
    const ManualVerb* inner = verb->find_verb(words[0]);
    if (inner == nullptr) {
      std::vector<std::string> names;
      for (const ManualVerb& each : verb->verbs) names.push_back(each.path.back());
      if (verb == &manual.program) names.insert(names.end(), {"help", "version"});
      throw UsageError(
          fmt::format("unknown command '{}'{}", words[0], verb->path.empty() ? "" : " of plumb " + verb->name()),
          did_you_mean(words[0], names, "commands: " + join(names)));
    }
    verb = inner;
    words.erase(words.begin());
  }
  const bool studies = verb->name() == "study";
  check_options(*verb, words, studies ? manual.study_keys : manual.run_keys);
  return *verb;
}

/// The keys with this name, or with this last part of their names, or of a section that may be repeated and is called
/// so: "axis" for [[study.axis]]. Empty if there are none.
std::string keys_called(const Manual& manual, const std::string& word) {
  const std::string own(name_in_plumb(word));
  Keys found;
  for (const ManualKey& key : manual.repeated_keys) {
    const std::string section = key.name.substr(0, key.name.rfind('.'));
    if (section == word || last_part(section) == word) found.push_back(key);
  }
  for (const Keys* keys : {&manual.run_keys, &manual.finetuning_keys, &manual.study_keys, &manual.repeated_keys}) {
    for (const ManualKey& key : *keys) {
      const bool known = find_by(found, &ManualKey::name, key.name) != nullptr;
      const std::string last = last_part(key.name);
      if (!known && (key.name == word || last == word || (!own.empty() && last == own))) found.push_back(key);
    }
  }
  return configuration_text(found, "");
}

/// The variants that papers or configurations call so, each below the heading of its kind. Empty if there are none.
std::string variants_called(const Manual& manual, const std::string& word) {
  std::vector<std::string> texts;
  for (const ManualList& list : manual.lists) {
    for (const ManualVariant& variant : list.variants)
      if (is_written(variant.name, word)) texts.push_back(list.heading + variant.text);
  }
  return join(texts, "\n");
}

/// The help of the commands with this option, "register" for --register, or with an argument that may be this word,
/// "studies" for `plumb list studies`. Empty if there are none.
std::string verbs_taking(const Manual& manual, const std::string& word) {
  std::vector<std::string> texts;
  for_each_verb(manual.program, [&](const ManualVerb& verb) {
    std::string lines;
    const std::string command = verb.path.empty() ? "plumb" : "plumb " + verb.name();
    for (const ManualOption& option : verb.options) {
      const bool chosen = option.argument && contains(option.choices, word);
      if (chosen)
        lines += fmt::format("{} {}: {}\n", command, word, verb.summary);
      else if (!option.argument && contains(option.names, "--" + word))
        lines += fmt::format("{} --{}: {}\n", command, word, option.description);
    }
    if (!lines.empty()) texts.push_back(lines);
  });
  return join(texts, "");
}

/// What `plumb help` knows besides commands: keys, and the last parts of their names.
std::vector<std::string> words_of_keys(const Manual& manual) {
  std::vector<std::string> words;
  for (const Keys* keys : {&manual.run_keys, &manual.finetuning_keys, &manual.study_keys, &manual.repeated_keys}) {
    for (const ManualKey& key : *keys) words.insert(words.end(), {key.name, last_part(key.name)});
  }
  return words;
}

/// What `plumb config` prints.
std::string configuration(const Manual& manual, const std::vector<std::string>& words) {
  const std::vector<std::pair<std::string, const Keys*>> readers = {
      {"run", &manual.run_keys}, {"finetune", &manual.finetuning_keys}, {"study", &manual.study_keys}};
  if (words.empty()) return configuration_text(manual.run_keys, "");
  if (words.size() > 1) return {};  // reported by the parser
  for (const auto& [name, keys] : readers)
    if (words[0] == name) return configuration_text(*keys, "");
  std::vector<std::string> names;
  for (const auto& [name, keys] : readers) {
    if (const std::string text = configuration_text(*keys, words[0]); !text.empty()) return text;
    for (const ManualKey& key : *keys) names.push_back(key.name.substr(0, key.name.rfind('.')));
    for (const ManualKey& key : *keys) names.push_back(key.name);
  }
  for (const ManualKey& key : manual.repeated_keys) names.push_back(key.name.substr(0, key.name.rfind('.')));
  if (const std::string text = keys_called(manual, words[0]); !text.empty()) return text;
  throw UsageError(fmt::format("unknown section or key '{}'", words[0]),
                   did_you_mean(words[0], names, "plumb config lists all"));
}

}  // namespace

std::string answered(const Manual& manual, std::vector<std::string> words) {
  if (!words.empty() && words[0] == "__complete") return completions(manual, {words.begin() + 1, words.end()});
  if (words.empty()) return help_text(manual.program);
  if (words == std::vector<std::string>{"version"} || words == std::vector<std::string>{"--version"})
    return "plumb " PLUMB_VERSION "\n";
  const bool help = words[0] == "help";  // plumb help VERB, or plumb help WORD
  if (help) words.erase(words.begin());
  if (help && words == std::vector<std::string>{"help"}) words.clear();
  if (help && words.size() == 1 && !words[0].starts_with('-') && manual.program.find_verb(words[0]) == nullptr) {
    const std::string word = words[0];
    std::vector<std::string> texts = {keys_called(manual, word), variants_called(manual, word)};
    std::erase(texts, "");
    if (!texts.empty()) return join(texts, "\n");
    if (const std::string text = verbs_taking(manual, word); !text.empty()) return text;
    std::vector<std::string> known = words_of_keys(manual);
    for (const ManualList& list : manual.lists)
      for (const ManualVariant& variant : list.variants) known.push_back(variant.name);
    for (const ManualVerb& verb : manual.program.verbs) known.push_back(verb.path.back());
    throw UsageError(fmt::format("unknown command, key, variant or option '{}'", words[0]),
                     did_you_mean(words[0], known, "`plumb help` lists the commands, `plumb config` the keys"));
  }
  const ManualVerb& verb = verb_in(manual, words);
  if (help || (words.size() == 1 && (words[0] == "-h" || words[0] == "--help"))) return help_text(verb);
  if (verb.name() == "config" &&
      std::none_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with('-'); }))
    return configuration(manual, words);
  if (verb.name() != "list") return {};
  const std::string kinds = listed(manual.lists, words);
  return kinds.empty() && words.size() == 1 ? variants_called(manual, words[0]) : kinds;
}

}  // namespace plumb::app
