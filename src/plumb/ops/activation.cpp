#include "plumb/ops/activation.h"

#include <cmath>
#include <numbers>

#include "plumb/ops/fused/fused.h"
#include "plumb/ops/profile.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {

Tensor silu(const Tensor& x) {
  const Timed timed("SiLU", [&] { return pass_cost(x, 2, 3); });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(x)) return fused::logistic_gate(x, {1, 0});
  }
  return at::silu(x);
}

Tensor gelu_tanh(const Tensor& x) {
  const Timed timed("GELU", [&] { return pass_cost(x, 2, 3); });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(x)) return fused::logistic_gate(x, {2 * std::sqrt(2 / std::numbers::pi), 0.044715});
  }
  return at::gelu(x, "tanh");
}

}  // namespace plumb::ops
