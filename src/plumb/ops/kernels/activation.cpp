#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/activation.cpp"
#include "plumb/ops/kernels/activation.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// The gate at some elements x.
template <typename T>
struct GateLanes {
  static constexpr hn::ScalableTag<T> d{};
  using V = hn::Vec<decltype(d)>;

  HWY_INLINE GateLanes(const LogisticGate& gate, V x_in) : x(x_in) {
    const V bound = hn::Set(d, T{1e4});  // beyond, σ is 0 or 1, and powers of x overflow
    near = hn::Min(hn::Max(x, hn::Neg(bound)), bound);
    square = hn::Mul(near, near);
    slope = hn::Set(d, static_cast<T>(gate.slope));
    cubic = hn::Set(d, static_cast<T>(gate.cubic));
    const V minus_g = hn::Neg(hn::Mul(slope, hn::MulAdd(hn::Mul(cubic, square), near, near)));
    const V one = hn::Set(d, T{1});
    // Past this, exp(−g) overflows, and σ is below the smallest number.
    const V most = hn::Set(d, static_cast<T>(sizeof(T) == sizeof(float) ? 88 : 706));
    sigma = hn::IfThenZeroElse(hn::Gt(minus_g, most), hn::Div(one, hn::Add(one, hn::Exp(d, minus_g))));
    varies = hn::Mul(sigma, hn::Sub(one, sigma));
  }
  /// g'(x) = slope·(1 + 3·cubic·x²)
  HWY_INLINE V g_slope() const { return hn::Mul(slope, hn::MulAdd(three_cubic(), square, hn::Set(d, T{1}))); }
  /// g''(x) = 6·slope·cubic·x
  HWY_INLINE V g_curvature() const { return hn::Mul(hn::Mul(hn::Set(d, T{2}), hn::Mul(slope, three_cubic())), near); }
  HWY_INLINE V three_cubic() const { return hn::Mul(hn::Set(d, T{3}), cubic); }

  V x;
  V near;  // x within bounds; any number where it is NaN
  V square, slope, cubic;
  V sigma;   // σ(g(x)); a number also where x is NaN
  V varies;  // σ(1 − σ)
};

template <typename T>
void forward(const LogisticGate& gate, const T* x, T* y, int64_t begin, int64_t end) {
  map_to(end - begin, y + begin, [&](auto load) HWY_ATTR {
    const GateLanes<T> at(gate, load(x + begin));
    return hn::Mul(at.x, at.sigma);
  });
}

template <typename T>
void backward(const LogisticGate& gate, const T* dy, const T* x, T* dx, int64_t begin, int64_t end) {
  map_to(end - begin, dx + begin, [&](auto load) HWY_ATTR {
    const GateLanes<T> at(gate, load(x + begin));
    const auto slope = hn::MulAdd(hn::Mul(at.x, at.varies), at.g_slope(), at.sigma);
    return hn::Mul(load(dy + begin), slope);
  });
}

template <typename T>
void double_backward(const LogisticGate& gate, const T* a, const T* dy, const T* x, T* dx, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  map_to(end - begin, dx + begin, [&](auto load) HWY_ATTR {
    const GateLanes<T> at(gate, load(x + begin));
    const auto g_slope = at.g_slope();
    const auto balance = hn::NegMulAdd(hn::Set(d, T{2}), at.sigma, hn::Set(d, T{1}));
    const auto bend = hn::MulAdd(balance, hn::Mul(g_slope, g_slope), at.g_curvature());
    const auto twice = hn::Mul(at.varies, hn::Add(g_slope, g_slope));
    const auto curvature = hn::MulAdd(hn::Mul(at.x, at.varies), bend, twice);
    return hn::Mul(hn::Mul(load(a + begin), load(dy + begin)), curvature);
  });
}

PLUMB_FILL_TABLE(LogisticGateKernels, .forward = forward<T>, .backward = backward<T>,
                 .double_backward = double_backward<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(LogisticGateKernels, logistic_gate);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
