// What may stand at the cursor of a command line. The shells' scripts (completion.cpp) ask for it with
// `plumb __complete SHELL WORDS…`.
#pragma once

#include <string>
#include <vector>

#include "../manual.h"

namespace plumb::app {

/// The answer to the words after `__complete`: the shell, and the words of the line after `plumb` up to the cursor. Its
/// first line says what else may stand there ("file" or "directory"), that the candidates are continued without a space
/// ("key"), or neither ("word"). The second is the word at the cursor. Each further line is a candidate, for zsh
/// and fish with its description.
std::string completions(const Manual& manual, const std::vector<std::string>& words);

}  // namespace plumb::app
