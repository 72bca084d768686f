#include "plumb/ops/norm.h"

#include "plumb/ops/device.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/gpu/gpu.h"
#include "plumb/ops/profile.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  require_one_device("layer norm", x, gamma, beta);
  const Timed timed("layer norm", [&] { return pass_cost(x, 2, 3); });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(x)) return fused::layer_norm(x, gamma, beta, eps);
  }
  if constexpr (kGpuBuilt) {
    if (gpu::serves(x)) return gpu::layer_norm(x, gamma, beta, eps);
  }
  return reference::layer_norm(x, gamma, beta, eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  require_one_device("RMS norm", x, gamma);
  const Timed timed("RMS norm", [&] { return pass_cost(x, 2, 3); });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(x)) return fused::rms_norm(x, gamma, eps);
  }
  if constexpr (kGpuBuilt) {
    if (gpu::serves(x)) return gpu::rms_norm(x, gamma, eps);
  }
  return reference::rms_norm(x, gamma, eps);
}

}  // namespace plumb::ops
