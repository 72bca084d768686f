#include <algorithm>
#include <vector>

#include "plumb/base/parallel.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/elementwise.h"
#include "plumb/ops/kernels/gemm.h"
#include "plumb/ops/kernels/quantize.h"

namespace plumb::ops::fused {
namespace {

using kernels::Bfloat16;
using kernels::PackedWeight;

/// Rounds up the number of rows of matrices that are copied anyway: matrix units process kTile rows at a time, and
/// batches of similar size can share a compiled product.
int64_t whole_tiles(int64_t rows) {
  constexpr int64_t kTile = 16;
  return (rows + kTile - 1) / kTile * kTile;
}

/// A matrix whose first `rows` rows are written by `convert(row, out)`; the padding rows are 0.
template <typename T, typename Convert>
Tensor converted(int64_t rows, int64_t width, at::ScalarType type, const Convert& convert) {
  Tensor matrix = at::empty({whole_tiles(rows), width}, at::TensorOptions(type));
  auto* out = static_cast<T*>(matrix.data_ptr());
  std::fill(out + rows * width, out + matrix.numel(), T{});
  parallel_ranges(rows, std::max<int64_t>(1, (1 << 15) / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) convert(row, out + row * width);
  });
  return matrix;
}

const float* data_or_null(const Tensor& bias) { return bias.defined() ? bias.data_ptr<float>() : nullptr; }

struct FloatWeight final : PackedLinear::Weight {
  explicit FloatWeight(const Tensor& w) : weight(w.data_ptr<float>(), w.size(0), w.size(1)) {}

  [[nodiscard]] Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const override {
    Tensor y = at::empty({x.size(0), weight.n()}, x.options());
    kernels::gemm<float>(x.size(0), x.data_ptr<float>(), weight, y.data_ptr<float>(),
                         {.bias = data_or_null(bias), .relu = relu});
    return y;
  }

  PackedWeight<float> weight;
};

struct RoundedWeight final : PackedLinear::Weight {
  /// rounded: bfloat16
  explicit RoundedWeight(const Tensor& rounded)
      : weight(static_cast<const Bfloat16*>(rounded.data_ptr()), rounded.size(0), rounded.size(1)) {}

  [[nodiscard]] Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const override {
    const int64_t rows = x.size(0);
    const float* in = x.data_ptr<float>();
    const Tensor a = converted<Bfloat16>(rows, weight.k(), at::kBFloat16, [&](int64_t row, Bfloat16* out) {
      kernels::round_to_bfloat16(in + row * weight.k(), weight.k(), out);
    });
    Tensor y = at::empty({a.size(0), weight.n()}, x.options());
    kernels::gemm(a.size(0), static_cast<const Bfloat16*>(a.data_ptr()), weight, y.data_ptr<float>(),
                  {.bias = data_or_null(bias), .relu = relu});
    return y.narrow(0, 0, rows);
  }

  PackedWeight<Bfloat16> weight;
};

class QuantizedWeight final : public PackedLinear::Weight {
 public:
  explicit QuantizedWeight(const Tensor& weight) : n_(weight.size(0)), k_(weight.size(1)) {
    std::vector<int8_t> values(static_cast<size_t>(n_ * k_));
    scales_.resize(static_cast<size_t>(n_));
    const float* in = weight.data_ptr<float>();
    parallel_ranges(n_, std::max<int64_t>(1, (1 << 15) / k_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        scales_[static_cast<size_t>(row)] = kernels::quantize(in + row * k_, k_, values.data() + row * k_);
      }
    });
    if (kernels::adds_pairs_in_16_bits()) {
      std::vector<int8_t> half(values.size());
      std::transform(values.begin(), values.end(), half.begin(),
                     [](int value) { return static_cast<int8_t>(value / 2); });
      std::transform(values.begin(), values.end(), half.begin(), values.begin(),
                     [](int value, int part) { return static_cast<int8_t>(value - part); });
      parts_.emplace_back(half.data(), n_, k_);
    }
    parts_.emplace_back(values.data(), n_, k_);
  }

  [[nodiscard]] Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const override {
    const int64_t rows = x.size(0);
    const float* in = x.data_ptr<float>();
    std::vector<float> scales(static_cast<size_t>(rows));
    const Tensor a = converted<int8_t>(rows, k_, at::kChar, [&](int64_t row, int8_t* out) {
      scales[static_cast<size_t>(row)] = kernels::quantize(in + row * k_, k_, out);
    });
    const auto product = [&](const PackedWeight<int8_t>& part) {
      const Tensor sums = at::empty({a.size(0), n_}, x.options().dtype(at::kInt));
      kernels::gemm<int8_t>(a.size(0), a.data_ptr<int8_t>(), part, sums.data_ptr<int32_t>());
      return sums;
    };
    const Tensor sums = product(parts_.front());
    if (parts_.size() > 1) sums.add_(product(parts_.back()));
    Tensor y = at::empty({rows, n_}, x.options());
    parallel_ranges(rows, std::max<int64_t>(1, (1 << 15) / n_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        kernels::dequantize(sums.data_ptr<int32_t>() + row * n_, scales[static_cast<size_t>(row)], scales_.data(),
                            data_or_null(bias), relu, n_, y.data_ptr<float>() + row * n_);
      }
    });
    return y;
  }

 private:
  int64_t n_, k_;
  std::vector<PackedWeight<int8_t>> parts_;  // whose sum is the weight: one, or two of half the size
  std::vector<float> scales_;                // (out)
};

}  // namespace

std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision) {
  if (precision == Precision::float32) return std::make_unique<FloatWeight>(weight);
  if (precision == Precision::bfloat16) return std::make_unique<RoundedWeight>(to_bfloat16(weight));
  return std::make_unique<QuantizedWeight>(weight);
}

}  // namespace plumb::ops::fused
