// The number of steps that each parameter of a set has taken; frozen parameters take none.
#pragma once

#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb {

class StepCounts {
 public:
  /// `count` parameters, none of which has taken a step.
  explicit StepCounts(size_t count) : steps_(at::zeros({static_cast<int64_t>(count)}, at::kLong)) {}

  [[nodiscard]] size_t size() const { return static_cast<size_t>(steps_.numel()); }
  [[nodiscard]] int64_t operator[](size_t k) const { return steps_.data_ptr<int64_t>()[k]; }
  /// Counts a step of parameter k and returns the new count.
  int64_t next(size_t k) { return ++steps_.data_ptr<int64_t>()[k]; }

  /// Whether any of them has taken a step.
  [[nodiscard]] bool started() const { return steps_.gt(0).any().item<bool>(); }

  /// The counts, which share memory with this: part of an optimizer's state.
  [[nodiscard]] const Tensor& numbers() const { return steps_; }

 private:
  Tensor steps_;
};

}  // namespace plumb
