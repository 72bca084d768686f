#include <fmt/format.h>

#include "completion.h"
#include "plumb/base/text.h"

namespace plumb::app {
namespace fish {

constexpr const char* kHead = R"fish(# Completion of plumb's commands in fish. Written by `plumb completion fish`.

# Whether the verb on the command line is this one: "", "train", "data prepare".
function __plumb_verb
    set -l words (commandline -opc)
    set -e words[1]
    set -l verb $words[1]
    if contains -- "$verb" @PARENTS@
        set verb (string join ' ' -- $words[1..2])
    end
    test "$verb" = "$argv[1]"
end

complete -c plumb -f
)fish";

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string values(const ManualOption& option) {
  std::string words = option.choices.empty() ? "" : " -a " + quoted(join(option.choices, " "));
  switch (option.kind) {
    case ValueKind::file:
      return " -F" + words;
    case ValueKind::directory:
      return " -a '(__fish_complete_directories)'";
    case ValueKind::run_key:
      return " -a '$__plumb_run_keys'";
    case ValueKind::study_key:
      return " -a '$__plumb_study_keys'";
    case ValueKind::text:
      break;
  }
  return words;
}

std::string line(const ManualVerb& verb, const std::string& what) {
  return fmt::format("complete -c plumb -n {} {}\n", quoted("__plumb_verb " + quoted(verb.name())), what);
}

std::string lines(const ManualVerb& verb) {
  std::string text;
  for (const ManualVerb& inner : verb.verbs)
    text += line(verb, fmt::format("-a {} -d {}", inner.path.back(), quoted(inner.summary)));
  for (const ManualOption& option : verb.options) {
    if (option.argument) {
      if (const std::string some = values(option); !some.empty()) text += line(verb, some.substr(1));
      continue;
    }
    std::string names;
    for (const std::string& name : option.names)
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value()) names += (option.kind == ValueKind::file ? " -r" : " -x") + values(option);
    text += line(verb, fmt::format("{} -d {}", names.substr(1), quoted(option.description)));
  }
  return text;
}

/// Each key followed by "=", and each key with each of its values.
std::string key_list(const std::string& name, const std::vector<ConfigurationKey>& keys) {
  std::string text = "set -g " + name;
  for (const ConfigurationKey& key : keys) {
    if (key.values.empty()) text += fmt::format(" {}=", key.name);
    for (const std::string& value : key.values) text += fmt::format(" {}={}", key.name, value);
  }
  return text + '\n';
}

}  // namespace fish

std::string fish_completion(const ManualVerb& program) {
  using namespace fish;
  std::vector<std::string> parents;
  std::string text;
  for_each_verb(program, [&](const ManualVerb& verb) {
    if (verb.path.size() == 1 && !verb.verbs.empty()) parents.push_back(verb.name());
    text += lines(verb);
  });
  std::string head = kHead;
  const std::string mark = "@PARENTS@";
  head.replace(head.find(mark), mark.size(), join(parents, " "));
  return head + key_list("__plumb_run_keys", run_keys()) + key_list("__plumb_study_keys", study_keys()) + text;
}

}  // namespace plumb::app
