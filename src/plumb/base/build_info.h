// What this program is and where it runs, as recorded with results.
#pragma once

#include <string>

#include "plumb/base/json.h"

namespace plumb {

/// The Git commit of the sources, 40 hexadecimal digits, with "-dirty" if they had been changed; empty if they were not
/// in a Git repository.
std::string build_commit();

/// {"version", "commit", "compiler"}.
Json build_info();

/// {"host", "processor", "cores", "memory_gib", "system"}.
Json machine_info();

}  // namespace plumb
