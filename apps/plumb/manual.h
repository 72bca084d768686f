// The command line as data: its verbs and their options, read from the CLI11 tree. `--help`, the man pages and the
// shell completions are generated from it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace plumb::app {

/// The heading of the options that verbs share; they come last.
inline constexpr const char* kCommonOptions = "Common options";

/// The kind of a value, for completion.
enum class ValueKind { text, file, directory, run_key, study_key };

struct ManualOption {
  std::vector<std::string> names;    // "-q", "--quiet"; the name of an argument: "RUN"
  std::string value;                 // "N", "FILE", "float32|bf16"; empty: a flag, or an argument
  std::vector<std::string> choices;  // values to choose from; with `open`, some of them
  bool open = true;                  // other values are accepted too
  ValueKind kind = ValueKind::text;
  std::string description;  // with the default and what it excludes
  std::string group;        // a heading: "Options"
  bool argument = false;    // has no dashes
  bool required = false;
  bool several = false;   // takes several values, one after the other
  bool repeated = false;  // may be given several times

  [[nodiscard]] bool takes_value() const { return !value.empty(); }
};

struct ManualVerb {
  std::vector<std::string> path;  // "data", "prepare"; empty: the program
  std::string group;              // a heading: "Train and use models"
  std::string summary;            // one line
  std::string example;            // a command, or empty
  std::vector<ManualOption> options;
  std::vector<ManualVerb> verbs;

  [[nodiscard]] std::string name() const;      // "data prepare"
  [[nodiscard]] std::string synopsis() const;  // "plumb train --out DIR [OPTION...]"
};

ManualVerb manual_of(const CLI::App& app);

/// Calls visit(verb) for the program and every verb, parents first.
template <typename Visit>
void for_each_verb(const ManualVerb& verb, const Visit& visit) {
  visit(verb);
  for (const ManualVerb& inner : verb.verbs) for_each_verb(inner, visit);
}

/// The text of `--help` for a verb or the program, in lines of at most 100 characters.
std::string help_text(const ManualVerb& verb);

/// Sets values that shell completion and the manual suggest for an option; other values are accepted too.
CLI::Option* suggest(CLI::Option* option, std::vector<std::string> values);

/// Makes `--help` of this program, and of verbs added later, print help_text.
void set_help(CLI::App& app);

}  // namespace plumb::app
