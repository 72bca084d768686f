#include "plumb/ops/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <omp.h>

namespace plumb::ops {

void set_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : omp_get_max_threads());
  // Where a signal dies out, as without norms and residual connections, its last digits are denormal numbers, with
  // which arithmetic takes many times as long. They count as 0; each thread has a switch of its own.
#pragma omp parallel
  at::globalContext().setFlushDenormal(true);
}

}  // namespace plumb::ops
