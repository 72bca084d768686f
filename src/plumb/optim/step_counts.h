// The number of steps that each parameter of a set has taken; frozen parameters take none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "plumb/io/safetensors.h"

namespace plumb {

class StepCounts {
 public:
  /// `count` parameters, none of which has taken a step.
  explicit StepCounts(size_t count) : steps_(count) {}

  [[nodiscard]] size_t size() const { return steps_.size(); }
  [[nodiscard]] int64_t operator[](size_t k) const { return steps_[k]; }
  /// Counts a step of parameter k and returns the new count.
  int64_t next(size_t k) { return ++steps_[k]; }

  /// Whether any of them has taken a step.
  [[nodiscard]] bool started() const {
    return std::any_of(steps_.begin(), steps_.end(), [](int64_t steps) { return steps > 0; });
  }

  /// Saves the counts as tensor `step`, with one element per parameter, or loads them; a single element applies to all
  /// parameters. load() throws Error, naming `origin`, if the tensor is missing or has another number of elements.
  void append(NamedTensors& tensors) const;
  void load(const NamedTensors& tensors, const std::string& origin);

 private:
  std::vector<int64_t> steps_;
};

}  // namespace plumb
