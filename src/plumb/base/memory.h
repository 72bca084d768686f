// How much memory this process holds.
#pragma once

#include <cstdint>

namespace plumb {

/// Memory that this process uses, in bytes; 0 where nobody counts it.
int64_t bytes_in_use();

}  // namespace plumb
