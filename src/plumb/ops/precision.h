// In which precision matrix products are computed: a choice of the caller around a piece of work, as with autocasting.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "plumb/ops/torch.h"

namespace plumb::ops {

class PackedLinear;

enum class Precision { float32, bfloat16, int8 };

/// "float32", "bf16" or "int8". Throws Error for any other name.
Precision precision_of(const std::string& name);

/// x in bfloat16, rounded to nearest, ties to even; for float32.
Tensor to_bfloat16(const Tensor& x);

/// How linear layers and the cross-entropy multiply while a guard for this stands. In bfloat16 the operands of products
/// are rounded; in int8, for linear layers alone, they are quantized row by row. Sums are formed in float32 or in
/// integers, and all else is float32: norms, attention, reductions. Second derivatives want float32.
class MatrixPrecision {
 public:
  /// With `weights_stay` the weights do not change as long as this lives, and no gradients are asked for: each is
  /// rounded and laid out once. Throws Error for int8 without it.
  explicit MatrixPrecision(Precision precision, bool weights_stay = false);
  ~MatrixPrecision();
  MatrixPrecision(const MatrixPrecision&) = delete;
  MatrixPrecision& operator=(const MatrixPrecision&) = delete;

  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] bool weights_stay() const { return weights_stay_; }

  /// A weight that stays, packed at its first use. Safe to call from several threads.
  const PackedLinear& packed(const Tensor& weight);

 private:
  Precision precision_;
  bool weights_stay_;
  std::mutex mutex_;
  std::map<std::tuple<const void*, int64_t, int64_t>, std::unique_ptr<PackedLinear>> packed_;  // by place and shape
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

/// Whether products with the float32 matrix x are to round their operands to bfloat16 now.
bool rounds_to_bfloat16(const Tensor& x);

/// What lays out the weights that x is multiplied with now; null where they may change, or x is not float32.
MatrixPrecision* packing_for(const Tensor& x);

}  // namespace plumb::ops
