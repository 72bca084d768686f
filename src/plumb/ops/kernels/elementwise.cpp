#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/elementwise.cpp"
#include "plumb/ops/kernels/elementwise.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

template <typename T>
void rectify(T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  map_to(n, x, [&](auto load) HWY_ATTR { return rectified(d, load(x)); });
}

template <typename T>
void relu_backward(const T* dy, const T* y, T* dx, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  map_to(end - begin, dx + begin, [&](auto load) HWY_ATTR {
    return hn::IfThenZeroElse(hn::Le(load(y + begin), hn::Zero(d)), load(dy + begin));
  });
}

void round_to_bfloat16(const float* x, int64_t count, Bfloat16* out) {
  auto* bits = reinterpret_cast<uint16_t*>(out);
  const auto* in = reinterpret_cast<const uint32_t*>(x);
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, in + i);
    const auto odd = hn::And(hn::ShiftRight<16>(value), hn::Set(d, 1U));
    const auto nearest = hn::ShiftRight<16>(hn::Add(value, hn::Add(odd, hn::Set(d, 0x7FFFU))));
    const auto nan = hn::Gt(hn::And(value, hn::Set(d, 0x7FFFFFFFU)), hn::Set(d, 0x7F800000U));
    hn::StoreU(hn::TruncateTo(half, hn::IfThenElse(nan, hn::Set(d, 0x7FC0U), nearest)), half, bits + i);
  }
  for (; i < count; ++i) {
    const bool nan = (in[i] & 0x7FFFFFFFU) > 0x7F800000U;
    bits[i] = static_cast<uint16_t>(nan ? 0x7FC0U : (in[i] + (in[i] >> 16 & 1U) + 0x7FFFU) >> 16);
  }
}

void complete_symmetric(const Completion& completion, const float* plus, float* c, int64_t n, int64_t begin,
                        int64_t end) {
  constexpr int64_t kTile = kCompletedRows;
  float tile[kTile][kTile];
  const int64_t rows = end - begin;
  for (int64_t left = 0; left < end; left += kTile) {
    const bool whole = left + kTile <= begin && rows == kTile;  // below the diagonal
    for (int64_t i = 0; i < rows; ++i) {
      float* row = c + (begin + i) * n + left;
      const float* other = plus == nullptr ? nullptr : plus + (begin + i) * n + left;
      const int64_t columns = whole ? kTile : std::min(kTile, begin + i + 1 - left);
      for (int64_t j = 0; j < columns; ++j) {
        float value = completion.scale * row[j];
        if (other != nullptr) value += completion.plus_scale * other[j];
        if (left + j == begin + i) value += completion.diagonal;
        row[j] = value;
        tile[i][j] = value;
      }
    }
    for (int64_t j = 0; j < kTile; ++j) {
      const int64_t first = std::max<int64_t>(0, left + j + 1 - begin);  // rows below the diagonal
      float* mirrored = c + (left + j) * n + begin;
      for (int64_t i = first; i < rows; ++i) mirrored[i] = tile[i][j];
    }
  }
}

template <typename T>
void column_sums(const T* x, int64_t width, int64_t begin, int64_t end, T* sums) {
  int64_t row = begin;
  for (; row + 4 <= end; row += 4) {
    const T* x0 = x + row * width;
    map_to(width, sums, [&](auto load) HWY_ATTR {
      const auto pair0 = hn::Add(load(x0), load(x0 + width));
      const auto pair1 = hn::Add(load(x0 + 2 * width), load(x0 + 3 * width));
      return hn::Add(load(sums), hn::Add(pair0, pair1));
    });
  }
  for (; row < end; ++row) {
    const T* x0 = x + row * width;
    map_to(width, sums, [&](auto load) HWY_ATTR { return hn::Add(load(sums), load(x0)); });
  }
}

PLUMB_FILL_TABLE(ElementwiseKernels, .rectify = rectify<T>, .relu_backward = relu_backward<T>,
                 .column_sums = column_sums<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(ElementwiseKernels, elementwise);
HWY_EXPORT(round_to_bfloat16);
HWY_EXPORT(complete_symmetric);

void round_to_bfloat16(const float* x, int64_t count, Bfloat16* out) {
  HWY_DYNAMIC_DISPATCH(round_to_bfloat16)(x, count, out);
}
void complete_symmetric(const Completion& completion, const float* plus, float* c, int64_t n, int64_t begin,
                        int64_t end) {
  HWY_DYNAMIC_DISPATCH(complete_symmetric)(completion, plus, c, n, begin, end);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
