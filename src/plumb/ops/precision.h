// In which precision matrix products are computed: a choice of the caller around a piece of work, as with autocasting.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "plumb/ops/torch.h"

namespace plumb::ops {

enum class Precision { float32, bfloat16 };

/// "float32" or "bf16". Throws Error for any other name.
Precision precision_of(const std::string& name);

/// x in bfloat16, rounded to nearest, ties to even; for float32.
Tensor to_bfloat16(const Tensor& x);

/// How linear layers and the cross-entropy multiply while a guard for this stands. In bfloat16 the operands of products
/// are rounded, sums are formed in float32, and so is all else: weights, norms, attention, reductions. Second
/// derivatives want float32.
class MatrixPrecision {
 public:
  /// With `weights_stay` the weights do not change as long as this lives: each is rounded once.
  explicit MatrixPrecision(Precision precision, bool weights_stay = false)
      : precision_(precision), weights_stay_(weights_stay) {}

  [[nodiscard]] Precision precision() const { return precision_; }

  /// A weight in bfloat16. Safe to call from several threads.
  Tensor rounded(const Tensor& weight);

 private:
  Precision precision_;
  bool weights_stay_;
  std::mutex mutex_;
  std::unordered_map<const void*, Tensor> rounded_;  // by place of the weight's first element
};

/// Makes `precision` that of this thread's products as long as the guard stands.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(MatrixPrecision& precision);
  ~PrecisionGuard();
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  MatrixPrecision* before_;
};

/// What products of float32 matrices are to round their operands with; null: nothing, they are computed in float32.
MatrixPrecision* rounding_of(const Tensor& x);

}  // namespace plumb::ops
