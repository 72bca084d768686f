// What this process holds of the machine's memory, and what is left for it.
#pragma once

#include <cstdint>

namespace plumb {

/// Bytes that are held by allocations: those of the C library's heap, and `elsewhere`, by other allocators; 0 if
/// unknown.
int64_t allocated_memory(int64_t elsewhere = 0);

/// Bytes that this process can allocate beyond those before the machine, or the container that it runs in, is out of
/// memory; the largest number if unknown.
int64_t available_memory(int64_t allocated);

}  // namespace plumb
