// Modules: parts of Plumb that wrap libraries whose symbols would conflict with others. They are loaded on first use,
// from the directory of Plumb's library, and export one function.
#pragma once

#include <string>

namespace plumb {

/// How a module's symbols are resolved.
enum class ModuleScope {
  local,       // hidden from other libraries
  self_first,  // hidden, and the module prefers its own symbols (RTLD_DEEPBIND)
};

/// The address of `entry` in libNAME.so. `what` names the module in messages. Throws Error if it is missing.
void* load_module(const std::string& name, const char* entry, const std::string& what, ModuleScope scope);

}  // namespace plumb
