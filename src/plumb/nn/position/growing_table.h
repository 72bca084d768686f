// A table with one row per position, computed on demand and kept.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "plumb/ops/torch.h"

namespace plumb {

/// When more rows are requested than exist, computes at least twice as many, so that decoding takes constant time per
/// position. Safe to use from several threads.
class GrowingTable {
 public:
  /// compute(length): the rows of the positions 0 … length − 1, (length, …), in float64.
  explicit GrowingTable(std::function<Tensor(int64_t length)> compute) : compute_(std::move(compute)) {}

  /// At least `length` rows, in the type and on the device of `options`.
  [[nodiscard]] Tensor rows(int64_t length, const at::TensorOptions& options) const {
    constexpr int64_t kFirst = 256;
    const std::scoped_lock lock(mutex_);
    const int64_t known = exact_.defined() ? exact_.size(0) : 0;
    if (!exact_.defined() || known < length) {
      int64_t wanted = std::max(kFirst, 2 * known);
      while (wanted < length) wanted *= 2;
      exact_ = compute_(wanted);
      rounded_ = Tensor();
    }
    if (!rounded_.defined() || rounded_.dtype() != options.dtype() || rounded_.device() != options.device()) {
      rounded_ = exact_.to(options);
    }
    return rounded_;
  }

 private:
  std::function<Tensor(int64_t)> compute_;
  mutable std::mutex mutex_;
  mutable Tensor exact_;
  mutable Tensor rounded_;
};

}  // namespace plumb
