// Modules: parts of Plumb whose libraries bring symbols that must not mix with those of others. They are loaded on
// first use, from the directory of Plumb's own library, and export one function.
#pragma once

#include <string>

namespace plumb {

/// How a module's symbols are looked up.
enum class ModuleScope {
  local,       // others do not see them
  self_first,  // and the module sees its own before those of others
};

/// The address of the function `entry` in `lib NAME .so`. `what` names the module in messages. Throws Error if it is
/// missing.
void* load_module(const std::string& name, const char* entry, const std::string& what, ModuleScope scope);

}  // namespace plumb
