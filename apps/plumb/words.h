// The words of a command line, before they are parsed.
#pragma once

#include <string>
#include <vector>

#include "manual.h"

namespace plumb::app {

/// Throws UsageError with the nearest command or option if a word, of those after `plumb`, is neither.
void check_words(const ManualVerb& program, const std::vector<std::string>& words);

/// What is wrong with the command line or known without running a verb: the text that answers `--help`, `--version`,
/// `help VERB`, `list` and the shells' `__complete`; empty if a verb must run. Throws UsageError as check_words does.
std::string answered(const Manual& manual, std::vector<std::string> words);

}  // namespace plumb::app
