#include <fmt/format.h>

#include "completion.h"
#include "plumb/base/text.h"

namespace plumb::app {
namespace zsh {

/// Single-quoted; characters of `special` are preceded by a backslash, for zsh's own parsers.
std::string quoted(const std::string& text, const std::string& special) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out + '\'';
}

/// The action that completes a value, as _arguments takes it after the second colon. A leading space means that the
/// function takes none of compadd's arguments.
std::string action(const ManualOption& option) {
  std::string words;
  if (!option.choices.empty()) words = "(" + join(option.choices, " ") + ")";
  switch (option.kind) {
    case ValueKind::file:
      return words.empty() ? "_files" : " _alternative \"files:file:_files\" \"words:name:" + words + '"';
    case ValueKind::directory:
      return "_files -/";
    case ValueKind::run_key:
      return " _plumb_key run";
    case ValueKind::study_key:
      return " _plumb_key study";
    case ValueKind::text:
      break;
  }
  return words;
}

/// One _arguments specification for each of the option's names.
std::string specification(const ManualOption& option) {
  if (option.argument) {
    return fmt::format(
        "      {}\n",
        quoted(fmt::format("{}:{}:{}", option.several ? "*" : "", option.names.front(), action(option)), ""));
  }
  std::string text;
  const std::string excluded = option.repeated || option.names.size() < 2 ? "" : "(" + join(option.names, " ") + ")";
  for (const std::string& name : option.names) {
    const std::string description = quoted(option.description, "[]\\:");
    std::string word = (option.repeated ? "*" : excluded) + name;
    if (option.takes_value() && name.starts_with("--")) word += '=';
    word += '[' + description.substr(1, description.size() - 2) + ']';
    if (option.takes_value()) word += fmt::format(":{}:{}", option.value, action(option));
    if (option.several) word += fmt::format("::{}:{}", option.value, action(option));
    text += "      '" + word + "'\n";
  }
  return text;
}

/// ("probe:Measure signal" "train:Train a model")
std::string described(const ManualVerb& verb) {
  std::string text = "(\n";
  for (const ManualVerb& inner : verb.verbs)
    text += "        " + quoted(inner.path.back() + ":" + inner.summary, "") + '\n';
  return text + "      )";
}

std::string branch(const ManualVerb& verb) {
  std::string text = fmt::format("    '{}')\n", verb.name());
  if (!verb.verbs.empty()) text += fmt::format("      verbs={}\n      _describe command verbs\n", described(verb));
  text += "      _arguments \\\n";
  std::string options;
  for (const ManualOption& option : verb.options) options += specification(option);
  for (const std::string& line : split(options, '\n')) {
    if (!line.empty()) text += "  " + line + " \\\n";
  }
  text += "        && return 0\n      ;;\n";
  return text;
}

}  // namespace zsh

std::string zsh_completion(const ManualVerb& program) {
  using namespace zsh;
  std::string text = "#compdef plumb\n# Completion of plumb's commands in zsh. Written by `plumb completion zsh`.\n\n";
  text += "# A key, or the values of one that is already there.\n_plumb_key() {\n  local -a keys values\n";
  const auto key_list = [&](const char* kind, const std::vector<ConfigurationKey>& keys) {
    std::vector<std::string> names;
    for (const ConfigurationKey& key : keys) names.push_back(key.name);
    text += fmt::format("  [[ $1 == {} ]] && keys=({})\n", kind, join(names, " "));
  };
  key_list("run", run_keys());
  key_list("study", study_keys());
  text += "  if compset -P 1 '*='; then\n    case ${${IPREFIX%=}##*=} in\n";
  for (const ConfigurationKey& key : keys_with_values())
    text += fmt::format("      {}) values=({}) ;;\n", key.name, join(key.values, " "));
  text += "    esac\n    compadd -a values\n  else\n    compadd -S = -a keys\n  fi\n}\n\n";
  std::vector<std::string> parents;
  std::string branches;
  for_each_verb(program, [&](const ManualVerb& verb) {
    if (verb.path.size() == 1 && !verb.verbs.empty()) parents.push_back(verb.name());
    branches += branch(verb);
  });
  text += fmt::format(
      "_plumb() {{\n  local verb=''\n  local -a verbs\n  if (( CURRENT > 2 )); then\n    verb=$words[2]\n    shift "
      "words\n"
      "    (( CURRENT-- ))\n    if [[ $verb == ({}) ]] && (( CURRENT > 2 )); then\n      verb+=\" $words[2]\"\n"
      "      shift words\n      (( CURRENT-- ))\n    fi\n  fi\n  case $verb in\n",
      join(parents, "|"));
  return text + branches + "  esac\n}\n\n_plumb \"$@\"\n";
}

}  // namespace plumb::app
