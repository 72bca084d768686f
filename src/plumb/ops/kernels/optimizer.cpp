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

#include "plumb/ops/kernels/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

// An update for elements of type T: a function of the gradient and the element of each vector that the update changes.
// Its coefficients are rounded to T once.
#define PLUMB_RULE HWY_ATTR __attribute__((always_inline))

template <typename T>
auto adam_moments(const ops::AdamUpdate& u) {
  return [beta1 = T(u.beta1), rest1 = T(1 - u.beta1), beta2 = T(u.beta2), rest2 = T(1 - u.beta2),
          scale = T(u.gradient_scale)](T gradient, T& m, T& v) PLUMB_RULE {
    const T g = gradient * scale;
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
  };
}

/// What Adam subtracts from w.
template <typename T>
auto adam_change(double step, double root_scale, double eps, double decay) {
  return [step = T(step), root_scale = T(root_scale), eps = T(eps), decay = T(decay)](T m, T v, T w)
             PLUMB_RULE { return step * m / (std::sqrt(v) * root_scale + eps) + decay * w; };
}

template <typename T>
auto rule(const ops::AdamUpdate& u) {
  return [moments = adam_moments<T>(u), change = adam_change<T>(u.step, u.root_scale, u.eps, u.decay)](
             T gradient, T& m, T& v, T& w) PLUMB_RULE {
    moments(gradient, m, v);
    // Not w·(1 − decay) − …: in float32 the factor would be 1 for a decay below 3e-8.
    w -= change(m, v, w);
  };
}

template <typename T>
auto rule(const LambStep& s) {
  return [change = adam_change<T>(s.step, s.root_scale, s.eps, s.decay), rate = T(s.rate)](T m, T& v, T& w)
             PLUMB_RULE { w -= rate * change(m, v, w); };
}

template <typename T>
auto rule(const ops::SgdUpdate& u) {
  // `own` and `kept`: of d and b in the step
  return [rate = T(u.rate), momentum = T(u.momentum), decay = T(u.decay), scale = T(u.gradient_scale),
          own = T(u.nesterov ? 1 : 0), kept = T(u.nesterov ? u.momentum : 1)](T gradient, T& b, T& w) PLUMB_RULE {
    const T d = scale * gradient + decay * w;
    b = momentum * b + d;
    w -= rate * (own * d + kept * b);
  };
}

template <typename T>
auto rule(const ops::AveragedUpdate& u) {
  return [rate = T(u.rate), decay = T(u.decay), share = T(u.share), scale = T(u.gradient_scale)](T gradient, T& a, T& w)
             PLUMB_RULE {
               w -= rate * (scale * gradient + decay * w);
               a += share * (w - a);
             };
}

template <typename T>
auto rule(const ops::LionUpdate& u) {
  return [beta1 = T(u.beta1), rest1 = T(1 - u.beta1), beta2 = T(u.beta2), rest2 = T(1 - u.beta2), rate = T(u.rate),
          decay = T(u.decay), scale = T(u.gradient_scale)](T gradient, T& m, T& w) PLUMB_RULE {
    const T g = gradient * scale;
    const T mean = beta1 * m + rest1 * g;
    const T negative = mean < 0 ? T(-1) : mean;  // NaN and 0 stay what they are
    m = beta2 * m + rest2 * g;
    w -= rate * ((mean > 0 ? T(1) : negative) + decay * w);
  };
}

template <typename T>
auto rule(const ops::ScheduleFreeUpdate& u) {
  return [beta1 = T(u.beta1), beta2 = T(u.beta2), rest2 = T(1 - u.beta2), eps = T(u.eps), rate = T(u.rate),
          root_scale = T(u.root_scale), decay = T(u.decay), share = T(u.share),
          scale = T(u.gradient_scale)](T gradient, T& z, T& x, T& v, T& w) PLUMB_RULE {
    const T g = gradient * scale;
    v = beta2 * v + rest2 * g * g;
    z -= rate * (g / (std::sqrt(v) * root_scale + eps) + decay * w);
    x += share * (z - x);
    w = z + beta1 * (x - z);
  };
}

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
HWY_INLINE void apply_rule(const Update& update, const T* gradient, const std::array<T*, Update::kVectors>& vectors,
                           int64_t n, std::index_sequence<kVector...>) {
  for_each_block<T>(std::array<const T*, Update::kVectors + 1>{gradient, vectors[kVector]...}, n,
                    [change = rule<T>(update), gradient, vectors](int64_t begin, int64_t end) HWY_ATTR {
#pragma omp simd
                      for (int64_t i = begin; i < end; ++i) change(gradient[i], vectors[kVector][i]...);
                    });
}

template <typename Update, typename T>
void pass(const Update& update, const T* gradient, const std::array<T*, Update::kVectors>& vectors, int64_t n) {
  apply_rule(update, gradient, vectors, n, std::make_index_sequence<Update::kVectors>());
}

template <typename T>
LambSquares lamb_moments(const ops::LambUpdate& update, const T* gradient, T* m, T* v, const T* w, int64_t n) {
  const auto moments = adam_moments<T>(update);
  const auto change = adam_change<T>(update.step, update.root_scale, update.eps, update.decay);
  double of_w = 0, of_u = 0;
  for_each_block<T>(std::array<const T*, 4>{gradient, m, v, w}, n, [&](int64_t begin, int64_t end) HWY_ATTR {
    double w_here = 0, u_here = 0;
#pragma omp simd reduction(+ : w_here, u_here)
    for (int64_t i = begin; i < end; ++i) {
      moments(gradient[i], m[i], v[i]);
      const auto u = static_cast<double>(change(m[i], v[i], w[i]));
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

#define PLUMB_PASS(Update) pass<Update, T>,
PLUMB_FILL_TABLE(OptimizerKernels, .passes = {PLUMB_FOR_EACH_UPDATE(PLUMB_PASS) pass<LambStep, T>},
                 .lamb_moments = lamb_moments<T>, .sum_of_squares = sum_of_squares<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(OptimizerKernels, optimizer);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
