#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/gram_schmidt.cpp"
#include "plumb/ops/kernels/gram_schmidt.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include <hwy/highway.h>

#include "plumb/ops/kernels/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// Number of vectors processed at a time: w is read once for all of them, and the sums hide each other's latency.
constexpr size_t kTogether = 4;

double square(const double* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum;
}

/// sums[k] += v_k·x for kTogether vectors.
template <typename T>
void add_products(const T* const* v, int64_t begin, const double* x, int64_t n, double* sums) {
  const T* v0 = v[0] + begin;
  const T* v1 = v[1] + begin;
  const T* v2 = v[2] + begin;
  const T* v3 = v[3] + begin;
  double s0 = 0;
  double s1 = 0;
  double s2 = 0;
  double s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int64_t i = 0; i < n; ++i) {
    s0 += x[i] * static_cast<double>(v0[i]);
    s1 += x[i] * static_cast<double>(v1[i]);
    s2 += x[i] * static_cast<double>(v2[i]);
    s3 += x[i] * static_cast<double>(v3[i]);
  }
  sums[0] += s0;
  sums[1] += s1;
  sums[2] += s2;
  sums[3] += s3;
}

/// x −= Σ factors[k]·v_k over kTogether vectors.
template <typename T>
void subtract_vectors(const T* const* v, int64_t begin, const double* factors, int64_t n, double* x) {
  const T* v0 = v[0] + begin;
  const T* v1 = v[1] + begin;
  const T* v2 = v[2] + begin;
  const T* v3 = v[3] + begin;
  const double f0 = factors[0];
  const double f1 = factors[1];
  const double f2 = factors[2];
  const double f3 = factors[3];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    x[i] -= (f0 * static_cast<double>(v0[i]) + f1 * static_cast<double>(v1[i])) +
            (f2 * static_cast<double>(v2[i]) + f3 * static_cast<double>(v3[i]));
  }
}

template <typename T>
void subtract_and_multiply(const T* const* vectors, size_t count, int64_t begin, int64_t end, const double* subtract,
                           bool products, T* w_all, double* sums) {
  double x[kGramSchmidtBlock];
  const int64_t n = end - begin;
  T* w = w_all + begin;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(w[i]);
  if (subtract != nullptr) {
    size_t k = 0;
    for (; k + kTogether <= count; k += kTogether) subtract_vectors(vectors + k, begin, subtract + k, n, x);
    for (; k < count; ++k) {
      const double factor = subtract[k];
      const T* v = vectors[k] + begin;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) x[i] -= factor * static_cast<double>(v[i]);
    }
    // The sums use w as stored.
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      w[i] = static_cast<T>(x[i]);
      x[i] = static_cast<double>(w[i]);
    }
  }
  if (products) {
    size_t k = 0;
    for (; k + kTogether <= count; k += kTogether) add_products(vectors + k, begin, x, n, sums + k);
    for (; k < count; ++k) {
      const T* v = vectors[k] + begin;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < n; ++i) sum += x[i] * static_cast<double>(v[i]);
      sums[k] += sum;
    }
  }
  sums[count] += square(x, n);
}

PLUMB_FILL_TABLE(GramSchmidtKernels, .subtract_and_multiply = subtract_and_multiply<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(GramSchmidtKernels, gram_schmidt);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
