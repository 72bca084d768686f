#include "plumb/ops/packed_linear.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {
namespace {

std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision) {
  static constexpr Operation kPack("packing of weights", PLUMB_FUSED(pack), &reference::pack);
  return kPack(weight.numel() > 0 ? path_of(weight) : Path::reference, weight, precision);
}

}  // namespace

PackedLinear::PackedLinear(const Tensor& weight, Precision precision)
    : rows_(weight.size(0)),
      columns_(weight.size(1)),
      device_(weight.device()),
      weight_(pack(weight.contiguous(), precision)) {}

Tensor PackedLinear::operator()(const Tensor& x_in, const Tensor& bias, bool relu) const {
  const Tensor x = as_contiguous(x_in, "matrix product");
  if (x.size(1) != columns_) {
    throw Error(fmt::format("an input of {} columns does not match a weight of {}", x.size(1), columns_));
  }
  if (x.device() != device_) detail::throw_mixed_devices("packed linear layer", x.device(), device_);
  require_one_device("packed linear layer", x, bias);
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != rows_))
    throw Error(fmt::format("a bias of {} elements does not match a weight of {} rows", bias.numel(), rows_));
  return x.size(0) > 0 ? weight_->multiply(x, as_contiguous(bias, "matrix product"), relu)
                       : at::empty({0, rows_}, x.options());
}

}  // namespace plumb::ops
