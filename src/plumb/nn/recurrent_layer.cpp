#include "plumb/nn/recurrent_layer.h"

#include <fmt/format.h>

#include <vector>

namespace plumb {

RecurrentLayer::RecurrentLayer(Parameters& parameters, int64_t number, int64_t in, int64_t size)
    : name_(fmt::format("lstm.{}", number)), size_(size) {
  const std::vector<int64_t> gates(4, size);
  weights_.input = parameters.add_stacked(name_ + ".weight_ih_l0", {4 * size, in}, gates, Role::weight);
  weights_.hidden = parameters.add_stacked(name_ + ".weight_hh_l0", {4 * size, size}, gates, Role::weight);
  weights_.input_bias = parameters.add(name_ + ".bias_ih_l0", {4 * size}, Role::bias);
  weights_.hidden_bias = parameters.add(name_ + ".bias_hh_l0", {4 * size}, Role::bias);
}

ops::LstmResult RecurrentLayer::operator()(const Tensor& x, const ops::LstmState& start, const Ragged& layout,
                                           const std::function<Tensor(const Tensor&)>& drop) const {
  ops::LstmWeights weights = weights_;
  if (drop) weights.hidden = drop(weights.hidden);
  return ops::lstm(x, weights, start, layout);
}

}  // namespace plumb
