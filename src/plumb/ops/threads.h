// The number of threads the program computes with.
#pragma once

#include <cstdint>

namespace plumb::ops {

/// Sets the number of threads of our own loops, oneDNN and LibTorch, which share OpenMP's pool; 0: OpenMP's default
/// (OMP_NUM_THREADS, or all processors). Call before the first tensor is created: otherwise LibTorch replaces OpenMP's
/// number by its own count of cores, which is 1 on some virtual machines. Also makes these threads flush denormal
/// numbers to 0. Throws Error above 4,096 threads.
void set_threads(int64_t threads);

}  // namespace plumb::ops
