#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/optimizer.cpp"
#include "plumb/ops/kernels/optimizer.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

template <typename T>
void adam_range(const AdamStep& s, const T* gradient, T* m, T* v, T* w, int64_t begin, int64_t end) {
  const auto beta1 = static_cast<T>(s.beta1), rest1 = static_cast<T>(1 - s.beta1);
  const auto beta2 = static_cast<T>(s.beta2), rest2 = static_cast<T>(1 - s.beta2);
  const auto eps = static_cast<T>(s.eps), step = static_cast<T>(s.step), root_scale = static_cast<T>(s.root_scale);
  const auto decay = static_cast<T>(s.decay), gradient_scale = static_cast<T>(s.gradient_scale);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] * gradient_scale;
    const T mi = beta1 * m[i] + rest1 * g;
    const T vi = beta2 * v[i] + rest2 * g * g;
    m[i] = mi;
    v[i] = vi;
    // Not w·(1 − decay) − …: in float32 the factor would be 1 for a decay below 3e-8.
    w[i] -= step * mi / (std::sqrt(vi) * root_scale + eps) + decay * w[i];
  }
}

template <typename T>
void sgd_range(const SgdStep& s, const T* gradient, T* b, T* w, int64_t n) {
  const auto rate = static_cast<T>(s.rate), momentum = static_cast<T>(s.momentum);
  const auto decay = static_cast<T>(s.decay), gradient_scale = static_cast<T>(s.gradient_scale);
  const T own = s.nesterov ? 1 : 0, kept = s.nesterov ? momentum : 1;  // of d and b in the step
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T di = gradient_scale * gradient[i] + decay * w[i];
    const T bi = momentum * b[i] + di;
    b[i] = bi;
    w[i] -= rate * (own * di + kept * bi);
  }
}

template <typename T>
double sum_of_squares(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void adam_f32(const AdamStep& s, const float* g, float* m, float* v, float* w, int64_t b, int64_t e) {
  adam_range(s, g, m, v, w, b, e);
}
void adam_f64(const AdamStep& s, const double* g, double* m, double* v, double* w, int64_t b, int64_t e) {
  adam_range(s, g, m, v, w, b, e);
}
void sgd_f32(const SgdStep& s, const float* g, float* b, float* w, int64_t n) { sgd_range(s, g, b, w, n); }
void sgd_f64(const SgdStep& s, const double* g, double* b, double* w, int64_t n) { sgd_range(s, g, b, w, n); }
double sum_of_squares_f32(const float* x, int64_t n) { return sum_of_squares(x, n); }
double sum_of_squares_f64(const double* x, int64_t n) { return sum_of_squares(x, n); }

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(adam_f32);
HWY_EXPORT(adam_f64);
HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_f64);
HWY_EXPORT(sum_of_squares_f32);
HWY_EXPORT(sum_of_squares_f64);

template <>
void adam(const AdamStep& step, const float* gradient, float* m, float* v, float* w, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(adam_f32)(step, gradient, m, v, w, begin, end);
}
template <>
void adam(const AdamStep& step, const double* gradient, double* m, double* v, double* w, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(adam_f64)(step, gradient, m, v, w, begin, end);
}
template <>
void sgd(const SgdStep& step, const float* gradient, float* b, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sgd_f32)(step, gradient, b, w, n);
}
template <>
void sgd(const SgdStep& step, const double* gradient, double* b, double* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sgd_f64)(step, gradient, b, w, n);
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
