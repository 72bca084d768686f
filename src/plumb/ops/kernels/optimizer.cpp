#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/optimizer.cpp"
#include "plumb/ops/kernels/optimizer.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

template <typename T>
void Sgd(const SgdStep& s, const T* gradient, T* b, T* w, int64_t n) {
  const auto rate = static_cast<T>(s.rate), momentum = static_cast<T>(s.momentum);
  const auto decay = static_cast<T>(s.decay), gradient_scale = static_cast<T>(s.gradient_scale);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T bi = momentum * b[i] + gradient_scale * gradient[i] + decay * w[i];
    b[i] = bi;
    w[i] -= rate * bi;
  }
}

template <typename T>
double SumOfSquares(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void SgdF32(const SgdStep& s, const float* g, float* b, float* w, int64_t n) { Sgd(s, g, b, w, n); }
void SgdF64(const SgdStep& s, const double* g, double* b, double* w, int64_t n) { Sgd(s, g, b, w, n); }
double SumOfSquaresF32(const float* x, int64_t n) { return SumOfSquares(x, n); }
double SumOfSquaresF64(const double* x, int64_t n) { return SumOfSquares(x, n); }

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(SgdF32);
HWY_EXPORT(SgdF64);
HWY_EXPORT(SumOfSquaresF32);
HWY_EXPORT(SumOfSquaresF64);

template <>
void sgd(const SgdStep& step, const float* gradient, float* b, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SgdF32)(step, gradient, b, w, n);
}
template <>
void sgd(const SgdStep& step, const double* gradient, double* b, double* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SgdF64)(step, gradient, b, w, n);
}
template <>
double sum_of_squares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresF32)(x, n);
}
template <>
double sum_of_squares(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresF64)(x, n);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
