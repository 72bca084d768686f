#include "plumb/ops/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <omp.h>

#include "plumb/base/error.h"

namespace plumb::ops {

void set_threads(int64_t threads) {
  constexpr int64_t kMost = 4096;  // OpenMP ends the process where it cannot have as many as it is told
  if (threads > kMost) throw Error(fmt::format("{} threads are impossible", threads), "4,096 are the most");
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : omp_get_max_threads());
  // Where a signal dies out, as without norms and residual connections, its last digits are denormal numbers, with
  // which arithmetic takes many times as long. They count as 0; each thread has a switch of its own.
#pragma omp parallel
  at::globalContext().setFlushDenormal(true);
}

}  // namespace plumb::ops
