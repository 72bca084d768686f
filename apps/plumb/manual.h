// The command line as data: its verbs, their options, and the keys that `--set` takes. `--help`, the man pages, the
// shells' completions and complaints about words are made from it alone, without the code that declares it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/config.h"

namespace plumb::app {

/// The heading of the options that verbs share; they come last.
inline constexpr const char* kCommonOptions = "Common options";

/// A status with which a command may end, and what it says.
struct ManualStatus {
  int64_t status = 0;
  std::string meaning;
};

struct ManualOption {
  std::vector<std::string> names;    // "-q", "--quiet"; the name of an argument: "RUN"
  std::string value;                 // "N", "FILE", "float32|bf16"; empty: a flag, or an argument
  std::vector<std::string> choices;  // values to choose from; with `open`, some of them
  bool open = true;                  // other values are accepted too
  std::string kind;                  // of the value, for completion: "file", "directory", "key" or "word"
  std::string description;           // with the default and what it excludes
  std::string group;                 // a heading: "Options"
  bool argument = false;             // has no dashes
  bool required = false;
  bool several = false;  // takes several values, one after the other

  [[nodiscard]] bool takes_value() const { return !value.empty(); }
};

struct ManualVerb {
  std::vector<std::string> path;  // "data", "prepare"; empty: the program
  std::string group;              // a heading: "Train and use models"
  std::string summary;            // one line
  std::string example;            // a command, or empty
  std::vector<ManualOption> options;
  std::vector<ManualStatus> statuses;  // of the program: those of all verbs; of a verb: further ones of its own
  std::vector<ManualVerb> verbs;

  [[nodiscard]] std::string name() const;      // "data prepare"
  [[nodiscard]] std::string synopsis() const;  // "plumb train --out DIR [OPTION...]"
  /// The verb within this one, and the option or null.
  [[nodiscard]] const ManualVerb* find_verb(const std::string& inner) const;
  [[nodiscard]] const ManualOption* find_option(const std::string& option) const;
};

/// A configuration key.
struct ManualKey {
  std::string name;   // "model.norm"
  std::string value;  // the default, as TOML; empty: none
  std::string meaning;
  std::vector<std::string> values;  // to choose from; empty: a number, a path or text
  bool repeated = false;            // of a section that may stand several times, [[study.axis]]: `--set` cannot name it
};

/// A variant, with what `plumb list` prints of it.
struct ManualVariant {
  std::string name;
  std::string text;
};

/// What `plumb list KIND` prints: a heading, then the variants.
struct ManualList {
  std::string kind;
  std::string heading;
  std::vector<ManualVariant> variants;
};

struct Manual {
  ManualVerb program;
  std::vector<ManualKey> run_keys, finetuning_keys, study_keys, repeated_keys;
  std::vector<ManualList> lists;
};
void describe(Fields& field, ManualStatus& status);
void describe(Fields& field, ManualOption& option);
void describe(Fields& field, ManualVerb& verb);
void describe(Fields& field, ManualKey& key);
void describe(Fields& field, ManualVariant& variant);
void describe(Fields& field, ManualList& list);
void describe(Fields& field, Manual& manual);

/// All that `plumb list KIND` prints.
std::string text_of(const ManualList& list);

/// Calls visit(verb) for the program and every verb, parents first.
template <typename Visit>
void for_each_verb(const ManualVerb& verb, const Visit& visit) {
  visit(verb);
  for (const ManualVerb& inner : verb.verbs) for_each_verb(inner, visit);
}

/// A configuration with these keys at their defaults, as TOML, each after a comment with its meaning; only those whose
/// names are or begin with `selected` ("train", "model.norm"), unless that is empty. Empty if there are none.
std::string configuration_text(const std::vector<ManualKey>& keys, const std::string& selected);

/// "0 success; 1 an error; …", also with those of the verbs within: "3 diff: the models compute different things".
std::string statuses_text(const ManualVerb& verb);

/// A command or an option of a verb, below a heading of its help.
struct ManualEntry {
  std::string heading;  // "Arguments"
  std::string term;     // "--set KEY=VALUE" or "-q, --quiet"; for an argument or a command, its name
  std::string text;
};
std::vector<ManualEntry> entries_of(const ManualVerb& verb);

/// The text of `--help` for a verb or the program, in lines of at most 100 characters.
std::string help_text(const ManualVerb& verb);

}  // namespace plumb::app
