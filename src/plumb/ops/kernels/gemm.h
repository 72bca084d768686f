// Matrix products by oneDNN, which keeps to OpenMP's pool and to the best instructions of the machine whatever the
// environment says of BLAS.
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/ops/kernels/bfloat16.h"

namespace plumb::kernels {

/// C = op(A) · op(B) [+ C] [+ bias] [then max(·, 0)], row-major; op transposes where asked. op(A): (m, k), op(B):
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
  bool accumulate = false;      // add to what C holds
  bool relu = false;            // in which NaN stays NaN; not together with accumulate
  const float* bias = nullptr;  // (n), added to every row
};

/// T: float or Bfloat16; sums are formed in float32 either way. What oneDNN compiles for a shape is kept for the next
/// product of that shape. Throws Error where the processor has no such product.
template <typename T>
void gemm(const Product& product, const T* a, const T* b, float* c);

/// A weight W (n, k), copied once into the layout that this processor multiplies by fastest. T: float, Bfloat16 or
/// int8_t. May be used by several threads at a time; copies share what they hold.
template <typename T>
class PackedWeight {
 public:
  /// From W as stored, rows one after another.
  PackedWeight(const T* weight, int64_t n, int64_t k);

  [[nodiscard]] int64_t n() const { return n_; }
  [[nodiscard]] int64_t k() const { return k_; }

  struct Content;  // what the library behind makes of it
  [[nodiscard]] const Content& content() const { return *content_; }

 private:
  int64_t n_;
  int64_t k_;
  std::shared_ptr<const Content> content_;
};

/// C (m, n) = A (m, k) · Wᵀ [+ bias] [then max(·, 0)], rows one after another. Otherwise as gemm().
template <typename T>
void gemm(int64_t m, const T* a, const PackedWeight<T>& weight, const float* bias, bool relu, float* c);

/// C (m, n) = A (m, k) · Wᵀ in integers of eight bits, |a| and |w| ≤ 127, summed in those of 32: exactly where the
/// processor has instructions for it (VNNI, AMX).
void gemm(int64_t m, const int8_t* a, const PackedWeight<int8_t>& weight, int32_t* c);

}  // namespace plumb::kernels
