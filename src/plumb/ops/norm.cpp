#include "plumb/ops/norm.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {
namespace {

/// Throws Error unless `factors` has an element for each column of x.
void require_columns(const char* operation, const Tensor& x, const Tensor& factors) {
  if (x.dim() == 2 && factors.dim() == 1 && factors.size(0) == x.size(1)) return;
  throw Error(fmt::format("{}: {} elements do not match rows of {}", operation, factors.numel(), x.size(-1)));
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  require_one_device("layer norm", x, gamma, beta);
  require_columns("layer norm", x, gamma);
  require_columns("layer norm", x, beta);
  static constexpr Operation kLayerNorm("layer norm", PLUMB_FUSED(layer_norm), &reference::layer_norm,
                                        PLUMB_GPU(layer_norm));
  return kLayerNorm(path_of(x), x, gamma, beta, eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  require_one_device("RMS norm", x, gamma);
  require_columns("RMS norm", x, gamma);
  static constexpr Operation kRmsNorm("RMS norm", PLUMB_FUSED(rms_norm), &reference::rms_norm, PLUMB_GPU(rms_norm));
  return kRmsNorm(path_of(x), x, gamma, eps);
}

}  // namespace plumb::ops
