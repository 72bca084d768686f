#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/norm.cpp"
#include "plumb/ops/kernels/norm.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

#include <cmath>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

template <typename T>
void forward(const NormForward<T>& p, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = p.width;
  for (int64_t row = begin; row < end; ++row) {
    const T* x = p.x + row * n;
    const T mean = p.center ? reduce_sum<T>(n, [&](auto load) HWY_ATTR { return load(x); }) / static_cast<T>(n) : T{0};
    const auto mu = hn::Set(d, mean);
    const T square = reduce_sum<T>(n, [&](auto load) HWY_ATTR {
      const auto centered = hn::Sub(load(x), mu);
      return hn::Mul(centered, centered);
    });
    const T rstd = T{1} / std::sqrt(square / static_cast<T>(n) + p.eps);
    p.statistics[2 * row] = mean;
    p.statistics[2 * row + 1] = rstd;
    const auto r = hn::Set(d, rstd);
    if (p.beta != nullptr) {
      map_to(n, p.y + row * n, [&](auto load) HWY_ATTR {
        return hn::MulAdd(hn::Mul(hn::Sub(load(x), mu), r), load(p.gamma), load(p.beta));
      });
    } else {
      map_to(n, p.y + row * n,
             [&](auto load) HWY_ATTR { return hn::Mul(hn::Mul(hn::Sub(load(x), mu), r), load(p.gamma)); });
    }
  }
}

template <typename T>
void backward(const NormBackward<T>& p, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = p.width;
  const T inverse = T{1} / static_cast<T>(n);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = p.x + row * n;
    const T* dy = p.dy + row * n;
    const auto mu = hn::Set(d, p.statistics[2 * row]);
    const auto r = hn::Set(d, p.statistics[2 * row + 1]);
    const auto hat = [&](auto load) HWY_ATTR { return hn::Mul(hn::Sub(load(x), mu), r); };
    const auto h = [&](auto load) HWY_ATTR { return hn::Mul(load(dy), load(p.gamma)); };
    const T mean_h = p.center ? reduce_sum<T>(n, h) * inverse : T{0};
    const T mean_hx = reduce_sum<T>(n, [&](auto load) HWY_ATTR { return hn::Mul(h(load), hat(load)); }) * inverse;
    const auto m1 = hn::Set(d, mean_h);
    const auto m2 = hn::Set(d, mean_hx);
    map_to(n, p.dx + row * n,
           [&](auto load) HWY_ATTR { return hn::Mul(r, hn::NegMulAdd(hat(load), m2, hn::Sub(h(load), m1))); });
    map_to(n, p.dgamma, [&](auto load) HWY_ATTR { return hn::MulAdd(load(dy), hat(load), load(p.dgamma)); });
    if (p.dbeta != nullptr) {
      map_to(n, p.dbeta, [&](auto load) HWY_ATTR { return hn::Add(load(dy), load(p.dbeta)); });
    }
  }
}

template <typename T>
void double_backward(const NormDoubleBackward<T>& p, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = p.width;
  const T inverse = T{1} / static_cast<T>(n);
  std::vector<T> v(static_cast<size_t>(n));
  for (int64_t row = begin; row < end; ++row) {
    const T* x = p.x + row * n;
    const T* dy = p.dy + row * n;
    const T* a = p.a + row * n;
    const auto mu = hn::Set(d, p.statistics[2 * row]);
    const T rstd = p.statistics[2 * row + 1];
    const auto r = hn::Set(d, rstd);
    const auto hat = [&](auto load) HWY_ATTR { return hn::Mul(hn::Sub(load(x), mu), r); };
    const auto h = [&](auto load) HWY_ATTR { return hn::Mul(load(dy), load(p.gamma)); };
    const auto mean = [&](auto f) HWY_ATTR { return reduce_sum<T>(n, f) * inverse; };
    const T mean_h = p.center ? mean(h) : T{0};
    const T mean_a = p.center ? mean([&](auto load) HWY_ATTR { return load(a); }) : T{0};
    const T mean_hx = mean([&](auto load) HWY_ATTR { return hn::Mul(h(load), hat(load)); });
    const T mean_ax = mean([&](auto load) HWY_ATTR { return hn::Mul(load(a), hat(load)); });
    const T mean_ah = mean([&](auto load) HWY_ATTR { return hn::Mul(load(a), h(load)); });
    // mean of a∘(h − mean(h) − x̂·mean(h∘x̂)), for the part of dx through r.
    const T through_r = mean_ah - mean_a * mean_h - mean_ax * mean_hx;
    const auto ma = hn::Set(d, mean_a);
    const auto mhx = hn::Set(d, mean_hx);
    const auto max_ = hn::Set(d, mean_ax);
    const auto u = [&](auto load) HWY_ATTR { return hn::Mul(r, hn::NegMulAdd(hat(load), max_, hn::Sub(load(a), ma))); };
    map_to(n, p.ddy + row * n, [&](auto load) HWY_ATTR {
      auto value = hn::MulAdd(load(p.b), hat(load), hn::Mul(load(p.gamma), u(load)));
      return p.c == nullptr ? value : hn::Add(value, load(p.c));
    });
    map_to(n, p.dgamma, [&](auto load) HWY_ATTR { return hn::MulAdd(load(dy), u(load), load(p.dgamma)); });
    map_to(n, v.data(), [&](auto load) HWY_ATTR {
      const auto pair = hn::MulAdd(load(a), mhx, hn::Mul(h(load), max_));
      return hn::NegMulAdd(r, pair, hn::Mul(load(p.b), load(dy)));
    });
    const T mean_v = p.center ? mean([&](auto load) HWY_ATTR { return load(v.data()); }) : T{0};
    const T mean_vx = mean([&](auto load) HWY_ATTR { return hn::Mul(load(v.data()), hat(load)); });
    const auto mv = hn::Set(d, mean_v);
    const auto along_hat = hn::Set(d, mean_vx + rstd * through_r);
    map_to(n, p.dx + row * n, [&](auto load) HWY_ATTR {
      return hn::Mul(r, hn::NegMulAdd(hat(load), along_hat, hn::Sub(load(v.data()), mv)));
    });
  }
}

PLUMB_FILL_TABLE(NormKernels, .forward = forward<T>, .backward = backward<T>, .double_backward = double_backward<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(NormKernels, norm);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
