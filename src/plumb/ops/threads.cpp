#include "plumb/ops/threads.h"

#include <ATen/Parallel.h>
#include <omp.h>

namespace plumb::ops {

void set_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : omp_get_max_threads());
}

}  // namespace plumb::ops
