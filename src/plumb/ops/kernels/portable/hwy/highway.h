// What the kernels use of Highway, with vectors of one element and the compiler's own instructions: for machines
// without Highway. Comes before Highway's headers when PLUMB_CPU_KERNELS is OFF; the kernels are the same sources.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define HWY_NAMESPACE N_PORTABLE
#define HWY_ONCE 1
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#define HWY_EXPORT(function) static_assert(true)
#define HWY_DYNAMIC_DISPATCH(function) HWY_NAMESPACE::function
#define HWY_ATTR
#define HWY_INLINE inline __attribute__((always_inline))
#define HWY_RESTRICT __restrict__

namespace hwy::HWY_NAMESPACE {

/// The kind of a vector; a vector is its one element, a mask a bool.
template <typename T>
struct ScalableTag {
  using Element = T;
};
template <typename D>
using Vec = typename D::Element;
template <typename D>
using TFromD = typename D::Element;
template <typename T, typename D>
using Rebind = ScalableTag<T>;

// clang-format off
template <typename D> HWY_INLINE constexpr size_t Lanes(D) { return 1; }
template <typename D> HWY_INLINE constexpr size_t MaxLanes(D) { return 1; }
template <typename D> HWY_INLINE Vec<D> Zero(D) { return {}; }
template <typename D> HWY_INLINE Vec<D> Set(D, Vec<D> value) { return value; }
template <typename D> HWY_INLINE bool FirstN(D, size_t count) { return count > 0; }

template <typename D> HWY_INLINE Vec<D> LoadU(D, const Vec<D>* p) { return *p; }
template <typename D> HWY_INLINE Vec<D> MaskedLoad(bool mask, D, const Vec<D>* p) { return mask ? *p : Vec<D>{}; }
template <typename D> HWY_INLINE void StoreU(Vec<D> value, D, Vec<D>* p) { *p = value; }
template <typename D> HWY_INLINE void BlendedStore(Vec<D> value, bool mask, D, Vec<D>* p) { if (mask) *p = value; }

template <typename T> HWY_INLINE T Add(T a, T b) { return a + b; }
template <typename T> HWY_INLINE T Sub(T a, T b) { return a - b; }
template <typename T> HWY_INLINE T Mul(T a, T b) { return a * b; }
template <typename T> HWY_INLINE T MulAdd(T a, T b, T c) { return a * b + c; }
template <typename T> HWY_INLINE T NegMulAdd(T a, T b, T c) { return c - a * b; }
template <typename T> HWY_INLINE T Max(T a, T b) { return a > b ? a : b; }
template <typename T> HWY_INLINE bool Gt(T a, T b) { return a > b; }
template <typename T> HWY_INLINE T And(T a, T b) { return a & b; }
template <int kBits, typename T> HWY_INLINE T ShiftRight(T a) { return a >> kBits; }
template <typename D, typename T> HWY_INLINE Vec<D> TruncateTo(D, T a) { return static_cast<Vec<D>>(a); }
template <typename D, typename T> HWY_INLINE Vec<D> ConvertTo(D, T a) { return static_cast<Vec<D>>(a); }
template <typename D, typename T> HWY_INLINE Vec<D> BitCast(D, T a) { Vec<D> b; std::memcpy(&b, &a, sizeof b); return b; }
template <typename D, typename T> HWY_INLINE T Exp(D, T x) { return std::exp(x); }

HWY_INLINE bool Or(bool a, bool b) { return a || b; }
template <typename D> HWY_INLINE bool AllFalse(D, bool mask) { return !mask; }
template <typename T> HWY_INLINE T IfThenElse(bool mask, T yes, T no) { return mask ? yes : no; }
template <typename T> HWY_INLINE T IfThenElseZero(bool mask, T value) { return mask ? value : T{}; }

template <typename T> HWY_INLINE T GetLane(T vector) { return vector; }
template <typename D> HWY_INLINE Vec<D> SumOfLanes(D, Vec<D> vector) { return vector; }
template <typename D> HWY_INLINE Vec<D> MaxOfLanes(D, Vec<D> vector) { return vector; }
// clang-format on

}  // namespace hwy::HWY_NAMESPACE
