// The configuration keys that `--set` accepts, with the values to choose from, for shell completion.
#pragma once

#include <string>
#include <vector>

namespace plumb::app {

struct ConfigurationKey {
  std::string name;                 // "model.norm"
  std::vector<std::string> values;  // the values to choose from; empty: a number, a path or text
};

/// The keys of a run: [model], [train], [task], [watch], [data] and [finetune], and the options of variants.
std::vector<ConfigurationKey> run_keys();

/// The keys of a study: those of a run, and those of its parts.
std::vector<ConfigurationKey> study_keys();

/// Those of both that have values to choose from.
std::vector<ConfigurationKey> keys_with_values();

/// A key whose value is the name of a variant, and the option keys of the variants. Listed by list.cpp, which knows
/// the registries.
struct ChoiceKey {
  std::string name;
  std::vector<std::string> names;
  std::vector<std::string> options;  // "model.rotary.base"
};
std::vector<ChoiceKey> choice_keys();

}  // namespace plumb::app
