// This machine.
#pragma once

#include <string>

namespace plumb {

/// Its name in the network; "localhost" if it has none.
std::string host_name();

/// The most memory, in bytes, that this process has held so far.
int64_t peak_resident_memory();

}  // namespace plumb
