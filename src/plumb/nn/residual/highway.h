// The gate of a highway network, Srivastava et al. 2015, arXiv 1505.00387.
#pragma once

#include <string>

#include "plumb/nn/linear.h"

namespace plumb {

/// σ(t)∘y + (1 − σ(t))∘x with t = W·x + b, W a trained (d_model, d_model) matrix and b (d_model) initially `bias`.
/// x, y: (tokens, d_model). Parameters: `prefix`.weight, `prefix`.bias.
class HighwayGate {
 public:
  HighwayGate(Parameters& parameters, const std::string& prefix, int64_t d_model, double bias);
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& y) const;

 private:
  Linear gate_;
};

}  // namespace plumb
