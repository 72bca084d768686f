#include "plumb/ops/dropout.h"

#include "plumb/ops/device.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/gpu/gpu.h"
#include "plumb/ops/profile.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {
namespace {

Tensor plus_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  require_one_device("dropout", x, residual);
  const Timed timed("dropout", [&] { return pass_cost(x, residual.defined() ? 3 : 2, 2); });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(x)) return fused::add_dropout(residual, x, p, key);
  }
  if constexpr (kGpuBuilt) {
    if (gpu::draws(x, key)) return gpu::add_dropout(residual, x, p, key);
  }
  return reference::add_dropout(residual, x, p, key);
}

}  // namespace

Tensor dropout(const Tensor& x, double p, const DropoutKey& key) {
  return p == 0 ? x : plus_dropout(Tensor(), x, p, key);
}

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  if (p > 0) return plus_dropout(residual, x, p, key);
  const Timed timed("residual sum", [&] { return pass_cost(x, 3, 0); });
  return residual + x;
}

}  // namespace plumb::ops
