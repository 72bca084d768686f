#include "plumb/ops/peak_rate.h"

#include <algorithm>

#include "plumb/base/timing.h"
#include "plumb/ops/device.h"
#include "plumb/ops/linear.h"

namespace plumb::ops {

double peak_product_rate(Precision precision) {
  constexpr double kEnough = 0.05;  // seconds, after which no larger size is tried
  constexpr int kRepetitions = 3;
  const at::NoGradGuard no_graph;
  const auto options =
      at::TensorOptions(default_device()).dtype(precision == Precision::bfloat16 ? at::kBFloat16 : at::kFloat);
  const Stopwatch total;
  double best = 0;
  for (int64_t size = 512; size <= 8192 && total.seconds() < kEnough; size *= 2) {
    const Tensor a = at::ones({size, size}, options), b = at::ones({size, size}, options);
    gemm(a, b);  // compiles and warms up
    synchronize(a.device());
    for (int i = 0; i < kRepetitions; ++i) {
      const Stopwatch watch;
      gemm(a, b);
      synchronize(a.device());
      const auto edge = static_cast<double>(size);
      best = std::max(best, 2 * edge * edge * edge / watch.seconds());
    }
  }
  return best;
}

}  // namespace plumb::ops
