// Shell completions of the program: scripts generated from the manual.
#pragma once

#include <string>

#include "../keys.h"
#include "../manual.h"

namespace plumb::app {

std::string bash_completion(const ManualVerb& program);
std::string zsh_completion(const ManualVerb& program);
std::string fish_completion(const ManualVerb& program);

}  // namespace plumb::app
