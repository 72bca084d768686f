// The output of `plumb --help` and `plumb COMMAND --help`, parsed.
#pragma once

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "plumb/base/text.h"
#include "support/process.h"

namespace plumb::test {

struct Help {
  std::vector<std::string> verbs;
  std::set<std::string> options;      // "-q", "--quiet"
  std::vector<std::string> headings;  // "Options"
  std::string text;
};

/// The help of a verb, such as {"data", "prepare"}, or of the program.
inline Help help_of(std::vector<std::string> verb) {
  verb.emplace_back("--help");
  Help help;
  help.text = run_plumb(verb).output;
  const std::regex heading("^([A-Z][A-Za-z ]+):$");
  const std::regex entry("^  ([a-z]+) ");
  const std::regex option("^  (-[a-z-]+)(, (-[a-z-]+))?");
  for (const std::string& line : split(help.text, '\n')) {
    std::smatch match;
    if (std::regex_search(line, match, heading)) help.headings.push_back(match[1]);
    if (help.headings.empty() || help.headings.back() == "Example" || help.headings.back() == "Arguments") continue;
    if (std::regex_search(line, match, entry)) help.verbs.push_back(match[1]);
    if (!std::regex_search(line, match, option)) continue;
    help.options.insert(match[1]);
    if (match[3].matched) help.options.insert(match[3]);
  }
  return help;
}

/// The help of the program and of every verb, by their names: "", "train", "data", "data prepare".
inline const std::map<std::string, Help>& all_help() {
  static const std::map<std::string, Help> all = [] {
    std::map<std::string, Help> help = {{"", help_of({})}};
    for (const std::string& verb : help.at("").verbs) {
      help[verb] = help_of({verb});
      for (const std::string& inner : help.at(verb).verbs) help[verb + ' ' + inner] = help_of({verb, inner});
    }
    return help;
  }();
  return all;
}

}  // namespace plumb::test
