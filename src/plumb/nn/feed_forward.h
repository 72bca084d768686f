// The position-wise feed-forward sub-layer:  f(x) = W₂·activation(W₁x + b₁) + b₂.
#pragma once

#include <string>

#include "plumb/nn/parameters.h"

namespace plumb {

class FeedForward {
 public:
  /// activation: "relu" or "gelu" (the exact one, x·Φ(x)). Throws Error on another name.
  FeedForward(Parameters& parameters, const std::string& prefix, int64_t d_model, int64_t width,
              const std::string& activation);

  /// x: (tokens, d_model) → (tokens, d_model).
  [[nodiscard]] Tensor operator()(const Tensor& x) const;

 private:
  bool relu_;
  Tensor weight1_;  // (width, d_model)
  Tensor bias1_;    // (width)
  Tensor weight2_;  // (d_model, width)
  Tensor bias2_;    // (d_model)
};

}  // namespace plumb
