#include <algorithm>
#include <utility>
#include <variant>
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

struct QuantizedWeight {
  std::vector<PackedWeight<int8_t>> parts;  // whose sum is the weight: one, or two of half the size
  std::vector<float> scales;                // (out)
};

using AnyWeight = std::variant<PackedWeight<float>, PackedWeight<Bfloat16>, QuantizedWeight>;

AnyWeight packed(const Tensor& weight, Precision precision) {
  const int64_t n = weight.size(0);
  const int64_t k = weight.size(1);
  if (precision == Precision::float32) return PackedWeight<float>(weight.data_ptr<float>(), n, k);
  if (precision == Precision::bfloat16) {
    const Tensor rounded = to_bfloat16(weight);
    return PackedWeight<Bfloat16>(static_cast<const Bfloat16*>(rounded.data_ptr()), n, k);
  }
  std::vector<int8_t> values(static_cast<size_t>(n * k));
  std::vector<float> scales(static_cast<size_t>(n));
  const float* in = weight.data_ptr<float>();
  parallel_ranges(n, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      scales[static_cast<size_t>(row)] = kernels::quantize(in + row * k, k, values.data() + row * k);
    }
  });
  std::vector<PackedWeight<int8_t>> parts;
  if (kernels::adds_pairs_in_16_bits()) {
    std::vector<int8_t> half(values.size());
    std::transform(values.begin(), values.end(), half.begin(),
                   [](int value) { return static_cast<int8_t>(value / 2); });
    std::transform(values.begin(), values.end(), half.begin(), values.begin(),
                   [](int value, int part) { return static_cast<int8_t>(value - part); });
    parts.emplace_back(half.data(), n, k);
  }
  parts.emplace_back(values.data(), n, k);
  return QuantizedWeight{std::move(parts), std::move(scales)};
}

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

Tensor multiply(const Tensor& x, const PackedWeight<float>& weight, const float* bias, bool relu) {
  Tensor y = at::empty({x.size(0), weight.n()}, x.options());
  kernels::gemm(x.size(0), x.data_ptr<float>(), weight, bias, relu, y.data_ptr<float>());
  return y;
}

Tensor multiply(const Tensor& x, const PackedWeight<Bfloat16>& weight, const float* bias, bool relu) {
  const int64_t rows = x.size(0);
  const float* in = x.data_ptr<float>();
  const Tensor a = converted<Bfloat16>(rows, weight.k(), at::kBFloat16, [&](int64_t row, Bfloat16* out) {
    kernels::round_to_bfloat16(in + row * weight.k(), weight.k(), out);
  });
  Tensor y = at::empty({a.size(0), weight.n()}, x.options());
  kernels::gemm(a.size(0), static_cast<const Bfloat16*>(a.data_ptr()), weight, bias, relu, y.data_ptr<float>());
  return y.narrow(0, 0, rows);
}

Tensor multiply(const Tensor& x, const QuantizedWeight& weight, const float* bias, bool relu) {
  const int64_t rows = x.size(0);
  const int64_t n = weight.parts.front().n();
  const int64_t k = weight.parts.front().k();
  const float* in = x.data_ptr<float>();
  std::vector<float> scales(static_cast<size_t>(rows));
  const Tensor a = converted<int8_t>(rows, k, at::kChar, [&](int64_t row, int8_t* out) {
    scales[static_cast<size_t>(row)] = kernels::quantize(in + row * k, k, out);
  });
  const Tensor sums = at::empty({a.size(0), n}, x.options().dtype(at::kInt));
  kernels::gemm(a.size(0), a.data_ptr<int8_t>(), weight.parts.front(), sums.data_ptr<int32_t>());
  for (size_t i = 1; i < weight.parts.size(); ++i) {
    const Tensor more = at::empty_like(sums);
    kernels::gemm(a.size(0), a.data_ptr<int8_t>(), weight.parts[i], more.data_ptr<int32_t>());
    sums.add_(more);
  }
  Tensor y = at::empty({rows, n}, x.options());
  parallel_ranges(rows, std::max<int64_t>(1, (1 << 15) / n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      kernels::dequantize(sums.data_ptr<int32_t>() + row * n, scales[static_cast<size_t>(row)], weight.scales.data(),
                          bias, relu, n, y.data_ptr<float>() + row * n);
    }
  });
  return y;
}

struct KernelWeight final : PackedLinear::Weight {
  explicit KernelWeight(AnyWeight weight) : any(std::move(weight)) {}

  [[nodiscard]] Tensor multiply(const Tensor& x, const Tensor& bias, bool relu) const override {
    const float* shift = bias.defined() ? bias.data_ptr<float>() : nullptr;
    return std::visit([&](const auto& weight) { return fused::multiply(x, weight, shift, relu); }, any);
  }

  AnyWeight any;
};

}  // namespace

std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision) {
  return std::make_unique<KernelWeight>(packed(weight, precision));
}

}  // namespace plumb::ops::fused
