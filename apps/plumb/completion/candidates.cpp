#include "candidates.h"

#include <algorithm>

namespace plumb::app {
namespace {

struct Candidate {
  std::string word;
  std::string description = {};
};

struct Candidates {
  std::string kind = "word";
  std::vector<Candidate> all = {};
};

/// Bash cuts words at "=" and ":"; this puts them together again.
std::vector<std::string> rejoined(const std::vector<std::string>& words) {
  std::vector<std::string> line;
  bool joins = false;
  for (const std::string& word : words) {
    const bool cut = word == "=" || word == ":";
    if (!line.empty() && (joins || cut)) {
      line.back() += word;
    } else {
      line.push_back(word);
    }
    joins = cut;
  }
  return line;
}

Candidates values_of(const ManualOption& option, const std::vector<ManualKey>& keys, const std::string& current) {
  Candidates candidates{option.kind};
  for (const std::string& choice : option.choices) candidates.all.push_back({choice});
  if (option.kind != "key") return candidates;
  const std::string name = current.substr(0, current.find('='));
  if (name == current) {
    for (const ManualKey& key : keys) candidates.all.push_back({key.name + '=', key.meaning});
    return candidates;
  }
  candidates.kind = "word";
  for (const ManualKey& key : keys) {
    if (key.name != name) continue;
    for (const std::string& value : key.values) candidates.all.push_back({name + '=' + value});
  }
  return candidates;
}

Candidates options_of(const ManualVerb& verb) {
  Candidates candidates;
  for (const ManualOption& option : verb.options) {
    if (option.argument) continue;
    for (const std::string& name : option.names) candidates.all.push_back({name, option.description});
  }
  return candidates;
}

/// Follows the words before the cursor to the verb, and to what the next word is to that.
Candidates candidates_for(const Manual& manual, const std::vector<std::string>& line) {
  const std::string& current = line.back();
  const ManualVerb* verb = &manual.program;
  const ManualOption* expecting = nullptr;  // the option whose value comes next
  std::vector<const ManualOption*> arguments;
  size_t given = 0;  // arguments
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    const std::string& word = line[i];
    if (word.starts_with('-')) {
      expecting = verb->find_option(word.substr(0, word.find('=')));
      const bool complete = expecting == nullptr || !expecting->takes_value() || word.find('=') != std::string::npos;
      if (complete) expecting = nullptr;
    } else if (expecting != nullptr) {
      if (!expecting->several) expecting = nullptr;
    } else if (const ManualVerb* inner = verb->find_verb(word)) {
      verb = inner;
    } else {
      ++given;
    }
  }
  const std::string first = verb->path.empty() ? "" : verb->path.front();
  const std::vector<ManualKey>& keys = first == "study"      ? manual.study_keys
                                       : first == "finetune" ? manual.finetuning_keys
                                                             : manual.run_keys;
  const size_t equals = current.find('=');
  if (current.starts_with("--") && equals != std::string::npos) {
    const ManualOption* option = verb->find_option(current.substr(0, equals));
    if (option == nullptr || !option->takes_value()) return {};
    Candidates candidates = values_of(*option, keys, current.substr(equals + 1));
    for (Candidate& candidate : candidates.all) candidate.word.insert(0, current, 0, equals + 1);
    return candidates;
  }
  if (current.starts_with('-')) return options_of(*verb);
  if (expecting != nullptr) return values_of(*expecting, keys, current);
  Candidates candidates;
  for (const ManualVerb& inner : verb->verbs) candidates.all.push_back({inner.path.back(), inner.summary});
  for (const ManualOption& option : verb->options)
    if (option.argument) arguments.push_back(&option);
  if (arguments.empty() || (given >= arguments.size() && !arguments.back()->several)) return candidates;
  return values_of(*arguments[std::min(given, arguments.size() - 1)], keys, current);
}

/// A line of the answer, in the form that the shell takes.
std::string line_of(const Candidate& candidate, const std::string& shell) {
  std::string line = candidate.word;
  if (shell == "zsh") {  // of its _describe, in which a colon begins the description
    for (size_t at = line.find(':'); at != std::string::npos; at = line.find(':', at + 2)) line.insert(at, 1, '\\');
  }
  if (shell != "bash" && !candidate.description.empty()) line += (shell == "zsh" ? ':' : '\t') + candidate.description;
  return line + '\n';
}

}  // namespace

std::string completions(const Manual& manual, const std::vector<std::string>& words) {
  const std::string shell = words.empty() ? "" : words[0];
  std::vector<std::string> line = words.empty() ? words : std::vector<std::string>(words.begin() + 1, words.end());
  if (shell == "bash") line = rejoined(line);
  if (line.empty()) line.emplace_back();
  const Candidates candidates = candidates_for(manual, line);
  std::string text = candidates.kind + '\n' + line.back() + '\n';
  for (const Candidate& candidate : candidates.all) {
    if (candidate.word.starts_with(line.back())) text += line_of(candidate, shell);
  }
  return text;
}

}  // namespace plumb::app
