#include "plumb/ops/dropout.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {
namespace {

Tensor plus_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  require_one_device("dropout", x, residual);
  if (residual.defined() && residual.sizes() != x.sizes())
    throw Error("dropout: the residual and x have different shapes");
  static constexpr Operation kDropout("dropout", PLUMB_FUSED(add_dropout), &reference::add_dropout,
                                      PLUMB_GPU(add_dropout));
  // A GPU draws a mask in one kernel if rows begin at multiples of eight elements.
  const bool aligned = x.numel() > 0 && (key.runs.empty() || x.numel() / x.size(0) % 8 == 0);
  return kDropout(path_of(x, aligned), residual, x, p, key);
}

}  // namespace

KeptShare kept_share(double p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("the probability of dropout is {}, not from 0 to 1", p));
  const int64_t below = std::lround((1.0 - p) * 65536.0);
  return {below, below == 0 ? 0.0 : 65536.0 / static_cast<double>(below)};
}

Tensor dropout(const Tensor& x, double p, const DropoutKey& key) {
  return p == 0 ? x : plus_dropout(Tensor(), x, p, key);
}

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  return p == 0 ? residual + x : plus_dropout(residual, x, p, key);
}

}  // namespace plumb::ops
