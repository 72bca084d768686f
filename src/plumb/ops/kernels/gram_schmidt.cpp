#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/gram_schmidt.cpp"
#include "plumb/ops/kernels/gram_schmidt.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

template <typename T>
double dot(const double* x, const T* y, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * static_cast<double>(y[i]);
  return sum;
}

template <typename T>
void gram_schmidt(const T* const* vectors, size_t count, int64_t begin, int64_t end, const double* subtract,
                  bool products, T* w_all, double* sums) {
  double x[kGramSchmidtBlock];
  const int64_t n = end - begin;
  T* w = w_all + begin;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(w[i]);
  if (subtract != nullptr) {
    for (size_t k = 0; k < count; ++k) {
      const double factor = subtract[k];
      const T* v = vectors[k] + begin;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) x[i] -= factor * static_cast<double>(v[i]);
    }
    // The sums are those of w as it is kept.
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      w[i] = static_cast<T>(x[i]);
      x[i] = static_cast<double>(w[i]);
    }
  }
  if (products) {
    for (size_t k = 0; k < count; ++k) sums[k] += dot(x, vectors[k] + begin, n);
  }
  sums[count] += dot(x, x, n);
}

void gram_schmidt_f32(const float* const* v, size_t count, int64_t begin, int64_t end, const double* subtract,
                      bool products, float* w, double* sums) {
  gram_schmidt(v, count, begin, end, subtract, products, w, sums);
}
void gram_schmidt_f64(const double* const* v, size_t count, int64_t begin, int64_t end, const double* subtract,
                      bool products, double* w, double* sums) {
  gram_schmidt(v, count, begin, end, subtract, products, w, sums);
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(gram_schmidt_f32);
HWY_EXPORT(gram_schmidt_f64);

template <>
void gram_schmidt(const float* const* vectors, size_t count, int64_t begin, int64_t end, const double* subtract,
                  bool products, float* w, double* sums) {
  HWY_DYNAMIC_DISPATCH(gram_schmidt_f32)(vectors, count, begin, end, subtract, products, w, sums);
}
template <>
void gram_schmidt(const double* const* vectors, size_t count, int64_t begin, int64_t end, const double* subtract,
                  bool products, double* w, double* sums) {
  HWY_DYNAMIC_DISPATCH(gram_schmidt_f64)(vectors, count, begin, end, subtract, products, w, sums);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
