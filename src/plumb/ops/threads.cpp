#include "plumb/ops/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <omp.h>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"

namespace plumb::ops {

void set_threads(int64_t threads) {
  constexpr int64_t kMost = 4096;  // OpenMP aborts the process if it cannot start the requested threads
  if (threads > kMost) throw Error(fmt::format("cannot use {} threads", threads), "the maximum is 4,096");
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : omp_get_max_threads());
  // Vanishing signals, as in models without norms and residual connections, become denormal numbers, which slow down
  // arithmetic many times. They are flushed to 0; each thread has its own setting.
  on_team([](int64_t, int64_t) { at::globalContext().setFlushDenormal(true); });
}

}  // namespace plumb::ops
