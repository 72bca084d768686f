// The words of a command line, before they are parsed.
#pragma once

#include <string>
#include <vector>

#include "manual.h"

namespace plumb::app {

/// What is wrong with the command line or known without running a verb: the text that answers no words at all,
/// `--help`,
/// `--version`, `help VERB`, `help KEY`, `list`, `config` and the shells' `__complete`; empty if a verb must run.
/// Throws UsageError with the nearest command or option if a word is neither.
std::string answered(const Manual& manual, std::vector<std::string> words);

}  // namespace plumb::app
