// The manual of commands, read from the declarations of the command line (the CLI11 tree).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "manual.h"

namespace plumb::app {

/// The program, or one of its verbs.
ManualVerb manual_of(const CLI::App& app);
ManualOption manual_of(const CLI::Option& option);

/// Sets values that shell completion and the manual suggest for an option; other values are accepted too.
CLI::Option* suggest(CLI::Option* option, std::vector<std::string> values);

/// Makes `--help` of this program, and of verbs added later, print help_text.
void set_help(CLI::App& app);

}  // namespace plumb::app
