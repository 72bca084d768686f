// Linear layers for inference: constant weights, packed once.
#pragma once

#include <memory>

#include "plumb/ops/precision.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// A weight W (out, in) in the layout and precision used for products. In int8, W and x are quantized by row: with
/// s = max |row| / 127, x·Wᵀ ≈ s_x · s_W · (round(x/s_x) · round(W/s_W)ᵀ), where the sums are integers.
class PackedLinear {
 public:
  /// weight: float32.
  PackedLinear(const Tensor& weight, Precision precision);

  /// x·Wᵀ + b, then max(·, 0) if `relu`, without an autograd graph. x: (rows, in), float32; bias: (out) or undefined →
  /// (rows, out). Thread-safe. Throws Error if shapes or devices do not match.
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& bias, bool relu) const;

  /// The packed weight and its product. x: (rows, in), contiguous, at least one row.
  struct Weight {
    virtual ~Weight() = default;
    [[nodiscard]] virtual Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const = 0;
  };

 private:
  int64_t rows_, columns_;
  at::Device device_;
  std::unique_ptr<const Weight> weight_;
};

}  // namespace plumb::ops
