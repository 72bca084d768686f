#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/top_values.cpp"
#include "plumb/ops/kernels/top_values.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// Keeps the k best in order. A block of the row costs one comparison unless it contains a better value, which soon
/// becomes rare, or a NaN, which ends the search.
template <typename T>
int64_t find(const T* HWY_RESTRICT x, int64_t n, int64_t k, T* HWY_RESTRICT values, int32_t* HWY_RESTRICT indices) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t count = 0;
  T threshold = -std::numeric_limits<T>::infinity();
  // Returns false at a NaN.
  const auto offer = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (x[i] <= threshold) continue;
      if (std::isnan(x[i])) {
        values[0] = x[i];
        indices[0] = static_cast<int32_t>(i);
        return false;
      }
      count = std::min(count + 1, k);
      int64_t at = count - 1;
      for (; at > 0 && values[at - 1] < x[i]; --at) {
        values[at] = values[at - 1];
        indices[at] = indices[at - 1];
      }
      values[at] = x[i];
      indices[at] = static_cast<int32_t>(i);
      if (count == k) threshold = values[k - 1];
    }
    return true;
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto bar = hn::Set(d, threshold);
    const auto below =
        hn::And(hn::And(hn::Le(hn::LoadU(d, x + i), bar), hn::Le(hn::LoadU(d, x + i + lanes), bar)),
                hn::And(hn::Le(hn::LoadU(d, x + i + 2 * lanes), bar), hn::Le(hn::LoadU(d, x + i + 3 * lanes), bar)));
    if (!hn::AllTrue(d, below) && !offer(i, i + 4 * lanes)) return 1;
  }
  if (!offer(i, n)) return 1;
  return count;
}

template <typename T>
T log_partition(const T* x, int64_t n, T shift) {
  const hn::ScalableTag<T> d;
  const auto offset = hn::Set(d, shift);
  return shift +
         std::log(reduce_sum<T>(n, [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(x), offset)); }));
}

PLUMB_FILL_TABLE(TopValueKernels, .find = find<T>, .log_partition = log_partition<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(TopValueKernels, top_values);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
