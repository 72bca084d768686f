#include "plumb/optim/newton_schulz.h"

#include "plumb/ops/linear.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

Tensor product(const Tensor& a, const Tensor& b, const ops::GemmOptions& options = {}) {
  if (!ops::rounds_to_bfloat16(a)) return ops::gemm(a, b, options);
  return ops::gemm(ops::to_bfloat16(a), ops::to_bfloat16(b), options);
}

}  // namespace

Tensor newton_schulz(const Tensor& matrix, int64_t steps) {
  const at::NoGradGuard no_graph;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = (tall ? matrix.t() : matrix).contiguous();
  x = x / (x.norm() + 1e-7);
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor square = product(x, x, {.transpose_b = true});
    const Tensor polynomial = (square * -4.7750).add_(product(square, square), 2.0315);
    x = product(polynomial, x, {.accumulate_into = x * 3.4445});
  }
  return tall ? x.t() : x;
}

}  // namespace plumb
