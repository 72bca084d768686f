#include "manual.h"
#include "plumb/base/contains.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plumb/base/text.h"
#include "plumb/base/utf8.h"

namespace plumb::app {
namespace {

/// "--set KEY=VALUE" or "-q, --quiet"; for an argument, its name.
std::string heading_of(const ManualOption& option) {
  const std::string names = join(option.names);
  return option.takes_value() ? names + ' ' + option.value : names;
}

constexpr size_t kWidth = 100;
constexpr size_t kColumn = 28;

/// "  heading   text", with the text in a separate column, below the heading if that is long.
std::string entry(const std::string& heading, const std::string& text) {
  const std::string begin = "  " + heading, column = wrapped(text, kWidth, std::string(kColumn, ' '));
  const size_t used = characters_in(begin);
  return begin + (used + 2 > kColumn ? '\n' + column : column.substr(used));
}

std::string comment(const std::string& text) { return wrapped(text, kWidth, "# "); }

}  // namespace

std::string configuration_text(const std::vector<ManualKey>& keys, const std::string& selected) {
  std::vector<std::pair<std::string, std::string>> sections;  // in the order of their first keys
  for (const ManualKey& key : keys) {
    if (!selected.empty() && key.name != selected && !key.name.starts_with(selected + '.')) continue;
    const size_t dot = key.name.rfind('.');
    const std::string section = key.name.substr(0, dot);
    auto own = std::find_if(sections.begin(), sections.end(), [&](const auto& each) { return each.first == section; });
    if (own == sections.end())
      own = sections.insert(own, {section, key.repeated ? "[[" + section + "]]\n" : "[" + section + "]\n"});
    if (!key.meaning.empty()) own->second += comment(key.meaning);
    if (!key.values.empty() && key.values != std::vector<std::string>{"true", "false"})
      own->second += comment("one of " + join(key.values));
    own->second += fmt::format("{}{} = {}\n", key.value.empty() ? "# " : "", key.name.substr(dot + 1), key.value);
  }
  std::vector<std::string> texts;
  for (const auto& [section, text] : sections) texts.push_back(text);
  return join(texts, "\n");
}

void describe(Fields& field, ManualStatus& status) {
  field("status", status.status);
  field("meaning", status.meaning);
}

void describe(Fields& field, ManualOption& option) {
  field("names", option.names);
  field("value", option.value);
  field("choices", option.choices);
  field("open", option.open);
  field("kind", option.kind);
  field("description", option.description);
  field("group", option.group);
  field("argument", option.argument);
  field("required", option.required);
  field("several", option.several);
}

void describe(Fields& field, ManualVerb& verb) {
  field("path", verb.path);
  field("group", verb.group);
  field("summary", verb.summary);
  field("example", verb.example);
  field.sections("options", verb.options);
  field.sections("exit_statuses", verb.statuses);
  field.sections("verbs", verb.verbs);
}

void describe(Fields& field, ManualKey& key) {
  field("name", key.name);
  field("value", key.value);
  field("meaning", key.meaning);
  field("values", key.values);
  field("repeated", key.repeated);
}

void describe(Fields& field, ManualVariant& variant) {
  field("name", variant.name);
  field("text", variant.text);
}

void describe(Fields& field, ManualList& list) {
  field("kind", list.kind);
  field("heading", list.heading);
  field.sections("variants", list.variants);
}

void describe(Fields& field, Manual& manual) {
  field.section("program", manual.program);
  field.sections("run_keys", manual.run_keys);
  field.sections("finetuning_keys", manual.finetuning_keys);
  field.sections("study_keys", manual.study_keys);
  field.sections("repeated_keys", manual.repeated_keys);
  field.sections("lists", manual.lists);
}

std::string text_of(const ManualList& list) {
  std::string text = list.heading;
  for (const ManualVariant& variant : list.variants) text += variant.text;
  return text;
}

const ManualVerb* ManualVerb::find_verb(const std::string& inner) const {
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [&](const auto& verb) { return verb.path.back() == inner; });
  return found == verbs.end() ? nullptr : &*found;
}

const ManualOption* ManualVerb::find_option(const std::string& option) const {
  for (const ManualOption& known : options) {
    if (!known.argument && contains(known.names, option)) return &known;
  }
  return nullptr;
}

std::string ManualVerb::name() const { return join(path, " "); }

std::string ManualVerb::synopsis() const {
  std::string text = "plumb";
  for (const std::string& word : path) text += ' ' + word;
  if (!verbs.empty()) return text + " COMMAND [OPTION...]";
  for (const ManualOption& option : options) {
    if (!option.argument) continue;
    const std::string name = option.names.front() + (option.several ? "..." : "");
    text += option.required ? ' ' + name : " [" + name + ']';
  }
  for (const ManualOption& option : options) {
    if (!option.argument && option.required) text += ' ' + option.names.back() + ' ' + option.value;
  }
  return text + " [OPTION...]";
}

std::string statuses_text(const ManualVerb& verb) {
  std::map<int64_t, std::string> texts;
  for_each_verb(verb, [&](const ManualVerb& each) {
    for (const ManualStatus& one : each.statuses) {
      std::string& text = texts[one.status];
      text += text.empty() ? fmt::format("{} ", one.status) : ", ";
      text += (&each == &verb ? "" : each.name() + ": ") + one.meaning;
    }
  });
  std::vector<std::string> all;
  for (const auto& [status, text] : texts) all.push_back(text);
  return join(all, "; ");
}

std::vector<ManualEntry> entries_of(const ManualVerb& verb) {
  std::vector<ManualEntry> entries;
  for (const ManualVerb& inner : verb.verbs) entries.push_back({inner.group, inner.path.back(), inner.summary});
  for (const ManualOption& option : verb.options)
    entries.push_back({option.argument ? "Arguments" : option.group, heading_of(option), option.description});
  return entries;
}

std::string help_text(const ManualVerb& verb) {
  std::string text = fmt::format("{}\n\nUsage: {}\n", verb.summary, verb.synopsis());
  std::string heading;
  for (const ManualEntry& each : entries_of(verb)) {
    if (each.heading != heading) text += fmt::format("\n{}:\n", each.heading);
    heading = each.heading;
    text += entry(each.term, each.text);
  }
  if (!verb.path.empty() && !verb.statuses.empty()) text += "\nExit status:\n";
  for (const ManualStatus& one : verb.statuses)
    if (!verb.path.empty()) text += entry(std::to_string(one.status), one.meaning);
  if (!verb.example.empty()) text += fmt::format("\nExample:\n  {}\n", verb.example);
  if (!verb.verbs.empty())
    text += fmt::format("\n`plumb{}{} COMMAND --help` shows the options of a command and an example.\n",
                        verb.path.empty() ? "" : " ", verb.name());
  if (verb.path.empty()) text += "\n" + wrapped("Exit status: " + statuses_text(verb), kWidth);
  return text;
}

}  // namespace plumb::app
