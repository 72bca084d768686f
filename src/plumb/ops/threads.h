// How many threads the program computes with.
#pragma once

#include <cstdint>

namespace plumb::ops {

/// Sets the threads of our own loops, of oneDNN and of LibTorch, which share OpenMP's pool; 0: as many as OpenMP would
/// take (OMP_NUM_THREADS, or every processor). Called once, before the first tensor is made: left alone, LibTorch
/// replaces OpenMP's number by its own count of cores, which is 1 on some virtual machines. Denormal numbers count as
/// 0 in these threads from then on.
void set_threads(int64_t threads);

}  // namespace plumb::ops
