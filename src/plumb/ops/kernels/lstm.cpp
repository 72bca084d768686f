#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/lstm.cpp"
#include "plumb/ops/kernels/lstm.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// Calls f(load, store) for the vectors of [0, n): `load(pointer)` gives the lanes at the current position, zero past
/// the end, and `store(vector, pointer)` writes them there.
template <typename T, typename F>
HWY_INLINE void for_each_vector(int64_t n, const F& f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    f([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); },
      [&](auto value, T* p) HWY_ATTR { hn::StoreU(value, d, p + i); });
  }
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    f([&](const T* p) HWY_ATTR { return load_first(d, mask, n - i, p + i); },
      [&](auto value, T* p) HWY_ATTR { store_first(value, d, mask, n - i, p + i); });
  }
}

/// 1/(1 + exp(−x)), from an exponential that cannot overflow.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>{1});
  const V small = exponential(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), small, one), hn::Add(one, small));
}

/// tanh(x); NaN stays NaN.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V hyperbolic_tangent(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
}

template <typename T>
void forward(const LstmCell<T>& p) {
  const hn::ScalableTag<T> d;
  const int64_t n = p.size;
  for_each_vector<T>(n, [&](auto load, auto store) HWY_ATTR {
    const auto i = sigmoid(d, load(p.gates));
    const auto f = sigmoid(d, load(p.gates + n));
    const auto g = hyperbolic_tangent(d, load(p.gates + 2 * n));
    const auto o = sigmoid(d, load(p.gates + 3 * n));
    const auto c = hn::MulAdd(f, load(p.cell_before), hn::Mul(i, g));
    const auto h = hn::Mul(o, hyperbolic_tangent(d, c));
    store(i, p.gates);
    store(f, p.gates + n);
    store(g, p.gates + 2 * n);
    store(o, p.gates + 3 * n);
    store(c, p.cell);
    store(h, p.hidden);
    store(h, p.output);
  });
}

template <typename T>
void backward(const LstmCellBackward<T>& p) {
  const hn::ScalableTag<T> d;
  const int64_t n = p.size;
  const auto one = hn::Set(d, T{1});
  const auto through_sigmoid = [&](auto y) HWY_ATTR { return hn::NegMulAdd(y, y, y); };
  const auto through_tanh = [&](auto y) HWY_ATTR { return hn::NegMulAdd(y, y, one); };
  for_each_vector<T>(n, [&](auto load, auto store) HWY_ATTR {
    const auto i = load(p.gates);
    const auto f = load(p.gates + n);
    const auto g = load(p.gates + 2 * n);
    const auto o = load(p.gates + 3 * n);
    const auto bounded = hyperbolic_tangent(d, load(p.cell));
    const auto dh = hn::Add(load(p.doutput), load(p.dhidden));
    const auto dc = hn::MulAdd(hn::Mul(dh, o), through_tanh(bounded), load(p.dcell));
    store(hn::Mul(hn::Mul(dc, g), through_sigmoid(i)), p.dgates);
    store(hn::Mul(hn::Mul(dc, load(p.cell_before)), through_sigmoid(f)), p.dgates + n);
    store(hn::Mul(hn::Mul(dc, i), through_tanh(g)), p.dgates + 2 * n);
    store(hn::Mul(hn::Mul(dh, bounded), through_sigmoid(o)), p.dgates + 3 * n);
    store(hn::Mul(dc, f), p.dcell);
  });
}

PLUMB_FILL_TABLE(LstmKernels, .forward = forward<T>, .backward = backward<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(LstmKernels, lstm);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
