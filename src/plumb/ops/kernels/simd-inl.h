// Shared by the vector kernels. Included once per instruction set, hence the unusual guard (see Highway's manual).
// clang-format off
#if defined(PLUMB_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_SIMD_INL_H
#undef PLUMB_SIMD_INL_H
#else
#define PLUMB_SIMD_INL_H
#endif
// clang-format on

#include <hwy/highway.h>
// hwy's mathematics must come after highway.h.
#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cstdint>

#include "plumb/ops/kernels/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Loads the first `count` lanes, those of `mask`, from p, and zero in the others. Reads nothing past them, and p need
/// not be aligned; Highway's MaskedLoad guarantees this only on machines with masked loads.
template <typename D, typename M, typename T>
HWY_INLINE hn::Vec<D> load_first(D d, M mask, int64_t count, const T* p) {
#if HWY_TARGET <= HWY_AVX2 || HWY_HAVE_SCALABLE  // AVX2 and later
  return hn::MaskedLoad(mask, d, p);
#else
  T lanes[hn::MaxLanes(D())] = {};
  for (int64_t i = 0; i < std::min<int64_t>(count, hn::MaxLanes(D())); ++i) lanes[i] = p[i];
  return hn::LoadU(d, lanes);
#endif
}

/// Writes the first `count` lanes of v, those of `mask`, to p, and touches nothing past them: other threads may write
/// there, or the memory may end there. On machines without masked stores, such as NEON, Highway's BlendedStore reads
/// and writes back whole vectors.
template <typename D, typename M, typename T>
HWY_INLINE void store_first(hn::Vec<D> v, D d, M mask, int64_t count, T* p) {
#if HWY_TARGET <= HWY_AVX2 || HWY_HAVE_SCALABLE  // AVX2 and later
  hn::BlendedStore(v, mask, d, p);
#else
  T lanes[hn::MaxLanes(D())];
  hn::StoreU(v, d, lanes);
  std::copy_n(lanes, std::min<int64_t>(count, hn::MaxLanes(D())), p);
#endif
}

/// exp(x); NaN stays NaN, whereas Highway's Exp gives 0.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// max(x, 0); NaN stays NaN, whereas Highway's Max of NaN and a number depends on the machine.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V rectified(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

/// Σ f(load) over [0, n), where `load(pointer)` gives the lanes at the current position, zero past the end, and
/// keep(i, values, count) is called with the values of [i, i + count). Two accumulators hide the latency of the
/// addition; summing in blocks limits the rounding error of long sums.
template <typename T, typename F, typename K>
HWY_INLINE T sum_and_keep(int64_t n, const F& f, const K& keep) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t block = 128 * lanes;
  auto total = hn::Zero(d);
  int64_t i = 0;
  while (i + 2 * lanes <= n) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    for (const int64_t end = std::min(n, i + block); i + 2 * lanes <= end; i += 2 * lanes) {
      const auto value0 = f([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); });
      const auto value1 = f([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i + lanes); });
      keep(i, value0, lanes);
      keep(i + lanes, value1, lanes);
      sum0 = hn::Add(sum0, value0);
      sum1 = hn::Add(sum1, value1);
    }
    total = hn::Add(total, hn::Add(sum0, sum1));
  }
  for (; i < n; i += lanes) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto value = f([&](const T* p) HWY_ATTR { return load_first(d, mask, n - i, p + i); });
    keep(i, value, std::min(lanes, n - i));
    total = hn::Add(total, hn::IfThenElseZero(mask, value));
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

/// Σ f(load) over [0, n).
template <typename T, typename F>
HWY_INLINE T reduce_sum(int64_t n, const F& f) {
  return sum_and_keep<T>(n, f, [](int64_t, auto, int64_t) HWY_ATTR {});
}

/// Writes f(load) to out[0, n), as map_to, and gives the sum, as reduce_sum.
template <typename T, typename F>
HWY_INLINE T map_and_sum(int64_t n, T* out, const F& f) {
  const hn::ScalableTag<T> d;
  return sum_and_keep<T>(n, f, [&](int64_t i, auto values, int64_t count) HWY_ATTR {
    if (count == static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(values, d, out + i);
    } else {
      store_first(values, d, hn::FirstN(d, static_cast<size_t>(count)), count, out + i);
    }
  });
}

/// Writes f(load) to out[0, n), which f may load from, too: at the places that are written next.
template <typename T, typename F>
HWY_INLINE void map_to(int64_t n, T* out, const F& f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(f([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, out + i);
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    store_first(f([&](const T* p) HWY_ATTR { return load_first(d, mask, n - i, p + i); }), d, mask, n - i, out + i);
  }
}

/// The largest of x[0, n), n ≥ 1; with a NaN among them, the result may be NaN or any of them.
template <typename T>
HWY_INLINE T reduce_max(int64_t n, const T* x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::Set(d, x[0]);
  auto best1 = best;  // a second maximum hides the latency of the first
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    best = hn::Max(best, hn::LoadU(d, x + i));
    best1 = hn::Max(best1, hn::LoadU(d, x + i + lanes));
  }
  best = hn::Max(best, best1);
  if (i + lanes <= n) {
    best = hn::Max(best, hn::LoadU(d, x + i));
    i += lanes;
  }
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    best = hn::IfThenElse(mask, hn::Max(best, load_first(d, mask, n - i, x + i)), best);
  }
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PLUMB_SIMD_INL_H
