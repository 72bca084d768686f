// The value residual, Zhou et al. 2024, "Value residual learning", arXiv 2410.17897: v ← λ₁·v + λ₂·v₁, where v₁ is the
// value of the same token in the first layer of the stack. λ₁ and λ₂ are trained, initially ½ each, in every layer
// except the first.
#pragma once

#include <string>

#include "plumb/nn/parameters.h"

namespace plumb {

class ValueResidual {
 public:
  ValueResidual(Parameters& parameters, const std::string& prefix)
      : weight_(parameters.add_constant(prefix + ".value_residual.weight", {2}, 0.5)) {}

  /// value, first: (tokens, kv_width) → the same.
  [[nodiscard]] Tensor operator()(const Tensor& value, const Tensor& first) const {
    return weight_.select(0, 0) * value + weight_.select(0, 1) * first;
  }

 private:
  Tensor weight_;  // (2): λ₁, λ₂
};

}  // namespace plumb
