#include "words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "completion/candidates.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb::app {
namespace {

/// Throws UsageError with the nearest option if a word is an option that the verb does not have.
void check_options(const ManualVerb& verb, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {  // no options after "--"
    const std::string name = words[i].substr(0, words[i].find('='));
    if (!name.starts_with('-')) continue;
    if (const ManualOption* option = verb.find_option(name)) {
      if (name == words[i] && option->takes_value()) ++i;  // its value may look like an option
      continue;
    }
    if (!name.starts_with("--") || std::isalnum(static_cast<unsigned char>(name[2])) == 0) continue;
    std::vector<std::string> names;
    for (const ManualOption& option : verb.options) {
      for (const std::string& known : option.names)
        if (known.starts_with("--")) names.push_back(known);
    }
    const std::string guess = nearest(name, names);
    throw UsageError("unknown option '" + name + "'",
                     guess.empty() ? "--help lists the options" : fmt::format("did you mean '{}'?", guess));
  }
}

/// The texts of all kinds of variants or of one; empty if the words are others.
std::string listed(const std::vector<ManualList>& lists, const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (const ManualList& list : lists) {
    if (words.empty() || (words.size() == 1 && words[0] == list.kind)) texts.push_back(list.text);
  }
  return join(texts, "\n");
}

}  // namespace

void check_words(const ManualVerb& program, const std::vector<std::string>& words) {
  const ManualVerb* verb = &program;
  auto word = words.begin();
  for (; word != words.end() && !word->starts_with('-') && !verb->verbs.empty(); ++word) {
    if (const ManualVerb* inner = verb->find_verb(*word)) {
      verb = inner;
      continue;
    }
    std::vector<std::string> names;
    for (const ManualVerb& inner : verb->verbs) names.push_back(inner.path.back());
    const std::string guess = nearest(*word, names);
    throw UsageError(fmt::format("unknown command '{}'{}", *word, verb == &program ? "" : " of plumb " + verb->name()),
                     guess.empty() ? "commands: " + join(names) : fmt::format("did you mean '{}'?", guess));
  }
  check_options(*verb, {word, words.end()});
}

std::string answered(const Manual& manual, std::vector<std::string> words) {
  if (!words.empty() && words[0] == "__complete") return completions(manual, {words.begin() + 1, words.end()});
  const bool help = !words.empty() && words[0] == "help";  // plumb help VERB
  if (help) words.erase(words.begin());
  check_words(manual.program, words);
  if (words == std::vector<std::string>{"--version"}) return "plumb " PLUMB_VERSION "\n";
  const ManualVerb* verb = &manual.program;
  for (; !words.empty() && verb->find_verb(words[0]) != nullptr; words.erase(words.begin()))
    verb = verb->find_verb(words[0]);
  if (help || (words.size() == 1 && (words[0] == "-h" || words[0] == "--help"))) return help_text(*verb);
  return verb->name() == "list" ? listed(manual.lists, words) : std::string();
}

}  // namespace plumb::app
