#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/optimizer.cpp"
#include "plumb/ops/kernels/optimizer.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/ops/kernels/element_types.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// What an update does to one element: operator()(gradient, element of each vector...).
template <typename Update, typename T>
struct Rule;

template <typename T>
struct Rule<ops::AdamUpdate, T> {
  explicit Rule(const ops::AdamUpdate& u)
      : beta1(static_cast<T>(u.beta1)),
        rest1(static_cast<T>(1 - u.beta1)),
        beta2(static_cast<T>(u.beta2)),
        rest2(static_cast<T>(1 - u.beta2)),
        eps(static_cast<T>(u.eps)),
        step(static_cast<T>(u.step)),
        root_scale(static_cast<T>(u.root_scale)),
        decay(static_cast<T>(u.decay)),
        scale(static_cast<T>(u.gradient_scale)) {}

  HWY_INLINE void moments(T gradient, T& m, T& v) const {
    const T g = gradient * scale;
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
  }
  HWY_INLINE T change(T m, T v, T w) const { return step * m / (std::sqrt(v) * root_scale + eps) + decay * w; }
  HWY_INLINE void operator()(T gradient, T& m, T& v, T& w) const {
    moments(gradient, m, v);
    // Not w·(1 − decay) − …: in float32 the factor would be 1 for a decay below 3e-8.
    w -= change(m, v, w);
  }

  T beta1, rest1, beta2, rest2, eps, step, root_scale, decay, scale;
};

template <typename T>
struct Rule<LambStep, T> {
  explicit Rule(const LambStep& s)
      : direction({.eps = s.eps, .step = s.step, .root_scale = s.root_scale, .decay = s.decay}),
        rate(static_cast<T>(s.rate)) {}

  HWY_INLINE void operator()(T m, T& v, T& w) const { w -= rate * direction.change(m, v, w); }

  Rule<ops::AdamUpdate, T> direction;
  T rate;
};

template <typename T>
struct Rule<ops::SgdUpdate, T> {
  explicit Rule(const ops::SgdUpdate& u)
      : rate(static_cast<T>(u.rate)),
        momentum(static_cast<T>(u.momentum)),
        decay(static_cast<T>(u.decay)),
        scale(static_cast<T>(u.gradient_scale)),
        own(u.nesterov ? 1 : 0),
        kept(u.nesterov ? momentum : 1) {}

  HWY_INLINE void operator()(T gradient, T& b, T& w) const {
    const T d = scale * gradient + decay * w;
    b = momentum * b + d;
    w -= rate * (own * d + kept * b);
  }

  T rate, momentum, decay, scale, own, kept;  // own and kept: of d and b in the step
};

template <typename T>
struct Rule<ops::AveragedUpdate, T> {
  explicit Rule(const ops::AveragedUpdate& u)
      : rate(static_cast<T>(u.rate)),
        decay(static_cast<T>(u.decay)),
        share(static_cast<T>(u.share)),
        scale(static_cast<T>(u.gradient_scale)) {}

  HWY_INLINE void operator()(T gradient, T& a, T& w) const {
    w -= rate * (scale * gradient + decay * w);
    a += share * (w - a);
  }

  T rate, decay, share, scale;
};

template <typename T>
struct Rule<ops::LionUpdate, T> {
  explicit Rule(const ops::LionUpdate& u)
      : beta1(static_cast<T>(u.beta1)),
        rest1(static_cast<T>(1 - u.beta1)),
        beta2(static_cast<T>(u.beta2)),
        rest2(static_cast<T>(1 - u.beta2)),
        rate(static_cast<T>(u.rate)),
        decay(static_cast<T>(u.decay)),
        scale(static_cast<T>(u.gradient_scale)) {}

  HWY_INLINE void operator()(T gradient, T& m, T& w) const {
    const T g = gradient * scale;
    const T mean = beta1 * m + rest1 * g;
    const T negative = mean < 0 ? T(-1) : mean;  // NaN and 0 stay what they are
    m = beta2 * m + rest2 * g;
    w -= rate * ((mean > 0 ? T(1) : negative) + decay * w);
  }

  T beta1, rest1, beta2, rest2, rate, decay, scale;
};

template <typename T>
struct Rule<ops::ScheduleFreeUpdate, T> {
  explicit Rule(const ops::ScheduleFreeUpdate& u)
      : beta1(static_cast<T>(u.beta1)),
        beta2(static_cast<T>(u.beta2)),
        rest2(static_cast<T>(1 - u.beta2)),
        eps(static_cast<T>(u.eps)),
        rate(static_cast<T>(u.rate)),
        root_scale(static_cast<T>(u.root_scale)),
        decay(static_cast<T>(u.decay)),
        share(static_cast<T>(u.share)),
        scale(static_cast<T>(u.gradient_scale)) {}

  HWY_INLINE void operator()(T gradient, T& z, T& x, T& v, T& w) const {
    const T g = gradient * scale;
    v = beta2 * v + rest2 * g * g;
    z -= rate * (g / (std::sqrt(v) * root_scale + eps) + decay * w);
    x += share * (z - x);
    w = z + beta1 * (x - z);
  }

  T beta1, beta2, rest2, eps, rate, root_scale, decay, share, scale;
};

/// Calls work(begin, end) for consecutive ranges that cover [0, n), each of the same few cache lines of every vector,
/// and asks for the next range's lines: the hardware does not look ahead past the end of a page.
template <typename T, size_t kCount, typename Work>
HWY_INLINE void for_each_block(const std::array<const T*, kCount>& vectors, int64_t n, const Work& work) {
  constexpr int64_t kLine = 64 / sizeof(T), kBlock = 4 * kLine;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    for (const T* vector : vectors) {
      for (int64_t line = 0; line < kBlock; line += kLine) hwy::Prefetch(vector + begin + kBlock + line);
    }
    work(begin, std::min(n, begin + kBlock));
  }
}

template <typename Update, typename T, size_t... kVector>
void pass(const Update& given, const T* gradient, const std::array<T*, Update::kVectors>& vectors, int64_t n,
          std::index_sequence<kVector...>) {
  const Rule<Update, T> rule(given);
  for_each_block<T>(std::array<const T*, Update::kVectors + 1>{gradient, vectors[kVector]...}, n,
                    [rule, gradient, vectors](int64_t begin, int64_t end) HWY_ATTR {
#pragma omp simd
                      for (int64_t i = begin; i < end; ++i) rule(gradient[i], vectors[kVector][i]...);
                    });
}

template <typename T>
LambSquares lamb_moments(const ops::LambUpdate& given, const T* gradient, T* m, T* v, const T* w, int64_t n) {
  const Rule<ops::AdamUpdate, T> rule(given);
  double of_w = 0, of_u = 0;
  for_each_block<T>(std::array<const T*, 4>{gradient, m, v, w}, n, [&](int64_t begin, int64_t end) HWY_ATTR {
    double w_here = 0, u_here = 0;
#pragma omp simd reduction(+ : w_here, u_here)
    for (int64_t i = begin; i < end; ++i) {
      rule.moments(gradient[i], m[i], v[i]);
      const auto u = static_cast<double>(rule.change(m[i], v[i], w[i]));
      w_here += static_cast<double>(w[i]) * static_cast<double>(w[i]);
      u_here += u * u;
    }
    of_w += w_here;
    of_u += u_here;
  });
  return {of_w, of_u};
}

template <typename T>
double sum_of_squares(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

#define PLUMB_UPDATE_FOR_TARGET(Update, name)                                                                          \
  void name##_f32(const Update& u, const float* g, const std::array<float*, Update::kVectors>& vectors, int64_t n) {   \
    pass(u, g, vectors, n, std::make_index_sequence<Update::kVectors>());                                              \
  }                                                                                                                    \
  void name##_f64(const Update& u, const double* g, const std::array<double*, Update::kVectors>& vectors, int64_t n) { \
    pass(u, g, vectors, n, std::make_index_sequence<Update::kVectors>());                                              \
  }                                                                                                                    \
  static_assert(true)
PLUMB_FOR_EACH_UPDATE(PLUMB_UPDATE_FOR_TARGET);
PLUMB_UPDATE_FOR_TARGET(LambStep, lamb_step);

PLUMB_KERNEL_TYPES(lamb_moments);
PLUMB_KERNEL_TYPES(sum_of_squares);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

#define PLUMB_DISPATCHED_UPDATE(Update, name)                                                                      \
  HWY_EXPORT(name##_f32);                                                                                          \
  HWY_EXPORT(name##_f64);                                                                                          \
  template <>                                                                                                      \
  void update(const Update& u, const float* g, const std::array<float*, Update::kVectors>& vectors, int64_t n) {   \
    HWY_DYNAMIC_DISPATCH(name##_f32)(u, g, vectors, n);                                                            \
  }                                                                                                                \
  template <>                                                                                                      \
  void update(const Update& u, const double* g, const std::array<double*, Update::kVectors>& vectors, int64_t n) { \
    HWY_DYNAMIC_DISPATCH(name##_f64)(u, g, vectors, n);                                                            \
  }                                                                                                                \
  static_assert(true)
PLUMB_FOR_EACH_UPDATE(PLUMB_DISPATCHED_UPDATE);
PLUMB_DISPATCHED_UPDATE(LambStep, lamb_step);

PLUMB_EXPORT_TYPES(lamb_moments);
PLUMB_EXPORT_TYPES(sum_of_squares);

template <>
LambSquares lamb_moments(const ops::LambUpdate& u, const float* g, float* m, float* v, const float* w, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(lamb_moments_f32)(u, g, m, v, w, n);
}
template <>
LambSquares lamb_moments(const ops::LambUpdate& u, const double* g, double* m, double* v, const double* w, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(lamb_moments_f64)(u, g, m, v, w, n);
}
template <>
double sum_of_squares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares_f32)(x, n);
}
template <>
double sum_of_squares(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares_f64)(x, n);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
