// Matrix products by oneDNN, which uses OpenMP's threads and the machine's best instructions, whatever the environment
// variables for BLAS.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "plumb/ops/kernels/bfloat16.h"

namespace plumb::kernels {

/// C = op(A) · op(B) [+ C] [+ bias] [then max(·, 0)], row-major, where op optionally transposes. op(A): (m, k), op(B):
/// (k, n), C: (m, n). Leading dimensions are the row strides of A, B and C as stored.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  bool accumulate = false;      // add to the contents of C
  bool relu = false;            // keeps NaN; not together with accumulate
  const float* bias = nullptr;  // (n), added to every row
};

/// T: float or Bfloat16; both are summed in float32. Each thread caches the code that oneDNN compiles for a shape.
/// Throws Error if the processor does not support the product, and std::bad_alloc if memory runs out.
template <typename T>
void gemm(const Product& product, const T* a, const T* b, float* c);

/// How many shapes the caches of all threads hold: about 16,384 at most, or 512 for each thread if that is more.
int64_t compiled_products();

/// A weight W (n, k), packed once into the layout that this processor multiplies fastest. T: float, Bfloat16 or int8_t.
/// May be used by several threads at a time; copies share their contents.
template <typename T>
class PackedWeight {
 public:
  /// `weight`: W or, if `transposed`, Wᵀ (k, n), with contiguous rows. Throws Error if the processor does not support
  /// the type.
  PackedWeight(const T* weight, int64_t n, int64_t k, bool transposed = false);

  [[nodiscard]] int64_t n() const { return n_; }
  [[nodiscard]] int64_t k() const { return k_; }

  struct Content;  // the packed form, internal to the library
  [[nodiscard]] const Content& content() const { return *content_; }

 private:
  int64_t n_;
  int64_t k_;
  std::shared_ptr<const Content> content_;
};

/// The sums of products of T.
template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, int8_t>, int32_t, float>;

/// As in Product; only `accumulate` for integers.
struct PackedOptions {
  const float* bias = nullptr;
  bool relu = false;
  bool accumulate = false;
};

/// C (m, n) = A (m, k) · Wᵀ, with contiguous rows. Otherwise like the product above. Integers: |a| and |w| ≤ 127; the
/// sums are exact if |w| ≤ 64 where adds_pairs_in_16_bits(): oneDNN adds 128 to each a, and 2 · 255 · 64 < 2¹⁵.
template <typename T>
void gemm(int64_t m, const T* a, const PackedWeight<T>& weight, SumOf<T>* c, const PackedOptions& options = {});

/// Whether two products of 8-bit integers are added in 16 bits, and then limited: on processors without instructions
/// for such sums (VNNI, AMX).
bool adds_pairs_in_16_bits();

}  // namespace plumb::kernels
