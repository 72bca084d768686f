#include "plumb/ops/norm.h"

#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  require_one_device("layer norm", x, gamma, beta);
  static constexpr Operation kLayerNorm("layer norm", PLUMB_FUSED(layer_norm), &reference::layer_norm,
                                        PLUMB_GPU(layer_norm));
  return kLayerNorm(path_of(x), x, gamma, beta, eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  require_one_device("RMS norm", x, gamma);
  static constexpr Operation kRmsNorm("RMS norm", PLUMB_FUSED(rms_norm), &reference::rms_norm, PLUMB_GPU(rms_norm));
  return kRmsNorm(path_of(x), x, gamma, eps);
}

}  // namespace plumb::ops
