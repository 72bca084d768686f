#include "plumb/ops/gram_schmidt_pass.h"

#include <algorithm>
#include <cstddef>

namespace plumb::ops {
namespace {

constexpr int64_t kParts = 64;    // partial sums, which are added in order
constexpr int64_t kBlock = 2048;  // elements for which all vectors stay in the cache between their two uses
constexpr size_t kTogether = 4;   // vectors for which w is read once, and whose sums hide each other's latency

/// sums[k] += v_k·x for kTogether vectors.
template <typename T>
[[gnu::always_inline]] inline void add_products(const T* const* v, int64_t begin, const double* x, int64_t n,
                                                double* sums) {
  const T *v0 = v[0] + begin, *v1 = v[1] + begin, *v2 = v[2] + begin, *v3 = v[3] + begin;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
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
[[gnu::always_inline]] inline void subtract_vectors(const T* const* v, int64_t begin, const double* factors, int64_t n,
                                                    double* x) {
  const T *v0 = v[0] + begin, *v1 = v[1] + begin, *v2 = v[2] + begin, *v3 = v[3] + begin;
  const double f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    x[i] -= (f0 * static_cast<double>(v0[i]) + f1 * static_cast<double>(v1[i])) +
            (f2 * static_cast<double>(v2[i]) + f3 * static_cast<double>(v3[i]));
  }
}

template <typename T>
[[gnu::always_inline]] inline double product(const T* v, const double* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * static_cast<double>(v[i]);
  return sum;
}

/// The pass on elements [begin, end), at most kBlock of them; adds to the sums. `subtract`: null: nothing.
template <typename T>
struct Block {
  const T* const* vectors;
  size_t count;
  const double* subtract;
  bool products;
  T* w;

  [[gnu::always_inline]] inline void compute(int64_t begin, int64_t end, double* sums) const {
    double x[kBlock];
    const int64_t n = end - begin;
    T* const rest = w + begin;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(rest[i]);
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
        rest[i] = static_cast<T>(x[i]);
        x[i] = static_cast<double>(rest[i]);
      }
    }
    if (products) {
      size_t k = 0;
      for (; k + kTogether <= count; k += kTogether) add_products(vectors + k, begin, x, n, sums + k);
      for (; k < count; ++k) sums[k] += product(vectors[k] + begin, x, n);
    }
    sums[count] += product(x, x, n);
  }
};

template <typename T>
void compute(const Block<T>& block, int64_t begin, int64_t end, double* sums) {
  block.compute(begin, end, sums);
}

#ifdef __x86_64__
template <typename T>
[[gnu::target("avx2,fma")]] void compute_avx2(const Block<T>& block, int64_t begin, int64_t end, double* sums) {
  block.compute(begin, end, sums);
}
template <typename T>
[[gnu::target("avx512f")]] void compute_avx512(const Block<T>& block, int64_t begin, int64_t end, double* sums) {
  block.compute(begin, end, sums);
}
#endif

template <typename T>
using Compute = void (*)(const Block<T>& block, int64_t begin, int64_t end, double* sums);

template <typename T>
Compute<T> best_of_machine() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return &compute_avx512<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &compute_avx2<T>;
#endif
  return &compute<T>;
}

/// The pass on some of kParts parts; `sums`: those of all parts. (GCC 14 fails on a lambda in its place.)
template <typename T>
struct PartsOfPass {
  const Block<T>& block;
  Compute<T> compute_block;
  int64_t size;
  double* sums;

  void operator()(int64_t first, int64_t last) const {
    for (int64_t part = first; part < last; ++part) {
      const int64_t end = size * (part + 1) / kParts;
      double* own = sums + static_cast<size_t>(part) * (block.count + 1);
      for (int64_t begin = size * part / kParts; begin < end; begin += kBlock)
        compute_block(block, begin, std::min(begin + kBlock, end), own);
    }
  }
};

}  // namespace

template <typename T>
std::vector<double> gram_schmidt_pass(const std::vector<const T*>& vectors, const std::vector<double>& subtract,
                                      bool products, int64_t size, T* w, const Ranges& ranges) {
  const size_t width = vectors.size() + 1;
  const Block<T> block{vectors.data(), vectors.size(), subtract.empty() ? nullptr : subtract.data(), products, w};
  std::vector<double> parts(static_cast<size_t>(kParts) * width, 0.0);
  ranges(kParts, PartsOfPass<T>{block, best_of_machine<T>(), size, parts.data()});
  std::vector<double> total(width, 0.0);
  for (size_t i = 0; i < parts.size(); ++i) total[i % width] += parts[i];
  return total;
}

template std::vector<double> gram_schmidt_pass(const std::vector<const float*>&, const std::vector<double>&, bool,
                                               int64_t, float*, const Ranges&);
template std::vector<double> gram_schmidt_pass(const std::vector<const double*>&, const std::vector<double>&, bool,
                                               int64_t, double*, const Ranges&);

}  // namespace plumb::ops
