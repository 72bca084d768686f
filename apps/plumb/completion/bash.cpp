#include <fmt/format.h>

#include "completion.h"
#include "plumb/base/text.h"

namespace plumb::app {
namespace bash {

/// The beginning of `_plumb`: the words before the cursor, the verb among them.
constexpr const char* kBegin = R"bash(
_plumb() {
  local words='' kind=none options='' verb='' previous='' current i glue=no
  local -a line=()
  # Bash cuts words at "=" and ":"; put them together again.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if ((${#line[@]} > 0)) && [[ $glue == yes || ${COMP_WORDS[i]} == [=:] ]]; then
      line[${#line[@]}-1]+=${COMP_WORDS[i]}
    else
      line+=("${COMP_WORDS[i]}")
    fi
    if [[ ${COMP_WORDS[i]} == [=:] ]]; then glue=yes; else glue=no; fi
  done
  local count=${#line[@]}
  current=${line[count-1]}
  if ((count > 1)); then
    verb=${line[0]}
    previous=${line[count-2]}
  fi
  if ((count > 2)); then
    case $verb in
      @PARENTS@) verb+=" ${line[1]}" ;;
    esac
  fi
  if [[ $current == --*=* ]]; then
    previous=${current%%=*}
    current=${current#*=}
  fi
  # An option of several values also has those after its first one.
  local before=$previous
  for ((i = count - 2; i > 0; i--)); do
    if [[ ${line[i]} == -* ]]; then
      before=${line[i]}
      break
    fi
  done
  case $verb in
)bash";

constexpr const char* kEnd = R"bash(  esac
  if [[ $current == -* && $kind == none ]]; then
    kind=words
    words=$options
  fi
  COMPREPLY=()
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    file | directory)
      current=${current##*=}
      if [[ $kind == file ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$current")
      else
        mapfile -t COMPREPLY < <(compgen -W "$words" -d -- "$current")
      fi
      compopt -o filenames 2>/dev/null
      ;;
    run_key | study_key)
      if [[ $current == *=* ]]; then
        _plumb_values "${current%%=*}"
        mapfile -t COMPREPLY < <(compgen -P "${current%%=*}=" -W "$words" -- "${current#*=}")
      else
        if [[ $kind == run_key ]]; then words=$_plumb_run_keys; else words=$_plumb_study_keys; fi
        mapfile -t COMPREPLY < <(compgen -S = -W "$words" -- "$current")
        compopt -o nospace 2>/dev/null
      fi
      ;;
  esac
  # What is before the last "=" or ":" is on the line already.
  local cut
  for cut in = :; do
    if [[ $COMP_WORDBREAKS == *$cut* && $current == *$cut* ]]; then
      COMPREPLY=("${COMPREPLY[@]#"${current%"$cut"*}$cut"}")
    fi
  done
}
complete -F _plumb plumb
)bash";

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  return text.replace(text.find(mark), mark.size(), by);
}

std::string kind_name(const ManualOption& option) {
  switch (option.kind) {
    case ValueKind::file:
      return "file";
    case ValueKind::directory:
      return "directory";
    case ValueKind::run_key:
      return "run_key";
    case ValueKind::study_key:
      return "study_key";
    case ValueKind::text:
      break;
  }
  return option.choices.empty() ? "text" : "words";
}

/// "kind=file" or "kind=words words='a b'".
std::string assignment(const ManualOption& option) {
  const std::string kind = "kind=" + kind_name(option);
  return option.choices.empty() ? kind : fmt::format("{} words='{}'", kind, join(option.choices, " "));
}

std::string branch(const ManualVerb& verb) {
  std::vector<std::string> words;  // the verbs within this one
  std::vector<std::string> options;
  std::string values;
  std::string further;  // for the values after the first
  std::string argument;
  for (const ManualVerb& inner : verb.verbs) words.push_back(inner.path.back());
  for (const ManualOption& option : verb.options) {
    if (option.argument) {
      if (argument.empty()) argument = assignment(option);
      continue;
    }
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (!option.takes_value()) continue;
    const std::string arm = fmt::format("        {}) {} ;;\n", join(option.names, " | "), assignment(option));
    values += arm;
    if (option.several) further += arm;
  }
  std::string text = fmt::format("    '{}')\n      options='{}'\n", verb.name(), join(options, " "));
  if (!words.empty()) argument = fmt::format("kind=words words='{}'", join(words, " "));
  if (!argument.empty()) text += fmt::format("      [[ $current == -* ]] || {}\n", argument);
  if (!further.empty()) text += "      [[ $current == -* ]] || case $before in\n" + further + "      esac\n";
  if (!values.empty()) text += "      case $previous in\n" + values + "      esac\n";
  return text + "      ;;\n";
}

}  // namespace bash

std::string bash_completion(const ManualVerb& program) {
  using namespace bash;
  std::string text = "# Completion of plumb's commands in bash. Written by `plumb completion bash`.\n";
  const auto key_list = [&](const char* name, const std::vector<ConfigurationKey>& keys) {
    std::vector<std::string> names;
    for (const ConfigurationKey& key : keys) names.push_back(key.name);
    text += fmt::format("{}='{}'\n", name, join(names, " "));
  };
  key_list("_plumb_run_keys", run_keys());
  key_list("_plumb_study_keys", study_keys());
  text += "\n# The values of a key.\n_plumb_values() {\n  case $1 in\n";
  for (const ConfigurationKey& key : keys_with_values())
    text += fmt::format("    {}) words='{}' ;;\n", key.name, join(key.values, " "));
  text += "  esac\n}\n";
  std::vector<std::string> parents;
  std::string branches;
  for_each_verb(program, [&](const ManualVerb& verb) {
    if (verb.path.size() == 1 && !verb.verbs.empty()) parents.push_back(verb.name());
    branches += branch(verb);
  });
  return text + replaced(kBegin, "@PARENTS@", join(parents, " | ")) + branches + kEnd;
}

}  // namespace plumb::app
