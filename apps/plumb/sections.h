// The sections of configurations and their keys: the one list, from which completion and the tables of
// docs/configuration.md are made.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/key_list.h"

namespace plumb::app {

struct ConfigurationSection {
  std::string name;                // "train", the beginning of its keys' full names
  std::vector<KeyList::Key> keys;  // "steps"; those of nested sections and of variants' options are "trouble.window"
  bool repeated = false;           // [[train.groups]]: any number of these sections
};

/// What reads a configuration: `plumb finetune` has a section more than other runs.
enum class ConfigurationReader { run, finetuning, study };

std::vector<ConfigurationSection> sections_of(ConfigurationReader reader);

/// docs/configuration.md with its tables of keys written anew; everything around them stays. A part of a study
/// without a heading gets one at the end, with the part's summary. Throws Error if another section has no heading, or a
/// heading such as "### [train]" is that of no section.
std::string configuration_page(const std::string& page);

}  // namespace plumb::app
