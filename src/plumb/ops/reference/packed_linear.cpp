#include <utility>

#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {
namespace {

/// Rows of integers, |value| ≤ 127, and the scale of each row.
struct Quantized {
  Tensor values;  // (rows, columns), float64
  Tensor scales;  // (rows, 1)
};

Quantized quantized(const Tensor& x) {
  const Tensor scales = x.abs().amax(1, /*keepdim=*/true) / 127;
  const Tensor divisors = scales.masked_fill(scales == 0, 1);  // for rows of zeros
  return {(x / divisors).round().to(at::kDouble), scales};
}

struct RoundedWeight final : PackedLinear::Weight {
  explicit RoundedWeight(Tensor rounded) : weight(std::move(rounded)) {}

  [[nodiscard]] Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const override {
    return gemm(x.to(weight.scalar_type()), weight, {.transpose_b = true, .bias = bias, .relu = relu});
  }

  Tensor weight;  // (out, in)
};

struct QuantizedWeight final : PackedLinear::Weight {
  explicit QuantizedWeight(const Tensor& weight) : rows(quantized(weight)) {}

  [[nodiscard]] Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const override {
    const Quantized q = quantized(x);
    const Tensor sums = at::mm(q.values, rows.values.t());  // exact in float64
    Tensor y = sums.to(x.scalar_type()) * (q.scales * rows.scales.t());
    if (bias.defined()) y.add_(bias);
    return relu ? y.relu_() : y;
  }

  Quantized rows;
};

}  // namespace

std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision) {
  if (precision == Precision::int8 && weight.size(1) > 0) return std::make_unique<QuantizedWeight>(weight.detach());
  const at::ScalarType type = precision == Precision::bfloat16 ? at::kBFloat16 : weight.scalar_type();
  return std::make_unique<RoundedWeight>(weight.detach().to(type, /*non_blocking=*/false, /*copy=*/true));
}

}  // namespace plumb::ops::reference
