// The precision of matrix products, chosen by the caller for a scope, like autocast.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "plumb/ops/torch.h"

namespace plumb::ops {

class PackedLinear;

enum class Precision { float32, bfloat16, int8 };

/// "float32", "bf16" or "int8". Throws Error for any other name.
Precision precision_of(const std::string& name);

/// float32 x rounded to bfloat16, to nearest, ties to even.
Tensor to_bfloat16(const Tensor& x);

/// How linear layers, recurrent layers and the cross-entropy compute products while a guard for this object is active.
/// In bfloat16, the operands of products are rounded; in int8, except in the cross-entropy, they are quantized by row.
/// Sums are computed in float32 or integers, and everything else in float32: norms, attention, reductions. Second
/// derivatives require float32.
class MatrixPrecision {
 public:
  /// With `weights_stay`, the caller promises that the weights do not change during the lifetime of this object;
  /// without gradients, each weight is then rounded and packed only once. Throws Error for int8 without it.
  explicit MatrixPrecision(Precision precision, bool weights_stay = false);
  ~MatrixPrecision();
  MatrixPrecision(const MatrixPrecision&) = delete;
  MatrixPrecision& operator=(const MatrixPrecision&) = delete;

  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] bool weights_stay() const { return weights_stay_; }

  /// A constant weight, packed on first use. Thread-safe; only those that need a weight wait while it is packed.
  const PackedLinear& packed(const Tensor& weight);

 private:
  struct Entry;
  using Key = std::tuple<const void*, int64_t, int64_t, int64_t, int64_t>;  // address, shape, strides

  Precision precision_;
  bool weights_stay_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Entry>> packed_;
};

/// Selects `precision` for this thread's products during the guard's lifetime.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(MatrixPrecision& precision);
  ~PrecisionGuard();
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  MatrixPrecision* before_;
};

/// What the innermost guard of this thread has selected; null without one.
MatrixPrecision* active_precision();

/// Whether products with the float32 matrix x currently round their operands to bfloat16.
bool rounds_to_bfloat16(const Tensor& x);

/// For the backward pass of an operation with rounded operands. Throws Error if gradients are enabled: it would have to
/// be differentiated again.
void refuse_second_derivatives();

/// The active MatrixPrecision if products with x should use packed weights; null if the weights may change, gradients
/// are enabled, x is not float32, or packing has no benefit (float32 without kernels).
MatrixPrecision* packing_for(const Tensor& x);

}  // namespace plumb::ops
