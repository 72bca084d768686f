#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/quantize.cpp"
#include "plumb/ops/kernels/quantize.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// max |x| + Σ 0·x, where the second term is NaN if any x is not finite.
float largest_magnitude(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto largest = zero;
  auto poison = zero;
  const auto take = [&](auto value) HWY_ATTR {
    largest = hn::Max(largest, hn::Max(value, hn::Sub(zero, value)));
    poison = hn::MulAdd(value, zero, poison);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) take(hn::LoadU(d, x + i));
  if (i < n) take(load_first(d, hn::FirstN(d, static_cast<size_t>(n - i)), n - i, x + i));
  return hn::GetLane(hn::MaxOfLanes(d, largest)) + hn::GetLane(hn::SumOfLanes(d, poison));
}

float quantize(const float* x, int64_t n, int8_t* out) {
  const float scale = largest_magnitude(x, n) / 127.0F;
  const float factor = scale > 0 ? 1 / scale : 0;
  // Adding 1.5 · 2²³ to a number of magnitude below 2²² leaves its nearest integer in the low bits of the sum.
  constexpr float kMagic = 12582912.0F;
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint32_t, decltype(d)> bits;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto rounded = [&](auto value) HWY_ATTR {
    const auto sum = hn::MulAdd(value, hn::Set(d, factor), hn::Set(d, kMagic));
    return hn::TruncateTo(bytes, hn::BitCast(bits, sum));
  };
  auto* to = reinterpret_cast<uint8_t*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(rounded(hn::LoadU(d, x + i)), bytes, to + i);
  if (i < n) {
    uint8_t rest[hn::MaxLanes(bytes)];
    hn::StoreU(rounded(load_first(d, hn::FirstN(d, static_cast<size_t>(n - i)), n - i, x + i)), bytes, rest);
    std::copy_n(rest, n - i, to + i);
  }
  return scale;
}

void dequantize(const int32_t* sums, float row_scale, const float* column_scales, const float* bias, bool relu,
                int64_t n, float* y) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> integers;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, row_scale);
  const auto value = [&](auto sum, auto column, auto shift) HWY_ATTR {
    const auto result = hn::MulAdd(hn::ConvertTo(d, sum), hn::Mul(scale, column), shift);
    return relu ? rectified(d, result) : result;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto shift = bias != nullptr ? hn::LoadU(d, bias + i) : hn::Zero(d);
    hn::StoreU(value(hn::LoadU(integers, sums + i), hn::LoadU(d, column_scales + i), shift), d, y + i);
  }
  if (i == n) return;
  const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
  const auto sum = load_first(integers, hn::FirstN(integers, static_cast<size_t>(n - i)), n - i, sums + i);
  const auto shift = bias != nullptr ? load_first(d, mask, n - i, bias + i) : hn::Zero(d);
  store_first(value(sum, load_first(d, mask, n - i, column_scales + i), shift), d, mask, n - i, y + i);
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(quantize);
HWY_EXPORT(dequantize);

float quantize(const float* x, int64_t n, int8_t* out) { return HWY_DYNAMIC_DISPATCH(quantize)(x, n, out); }

void dequantize(const int32_t* sums, float row_scale, const float* column_scales, const float* bias, bool relu,
                int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(dequantize)(sums, row_scale, column_scales, bias, relu, n, y);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
