#include "plumb/nn/recurrent_layer.h"

#include <fmt/format.h>

#include <vector>

namespace plumb {
namespace {

ops::LstmWeights lstm_weights(Parameters& parameters, const std::string& name, int64_t in, int64_t size) {
  const std::vector<int64_t> gates(4, size);
  ops::LstmWeights weights;
  weights.input = parameters.add_stacked(name + ".weight_ih_l0", {4 * size, in}, gates, Role::weight);
  weights.hidden = parameters.add_stacked(name + ".weight_hh_l0", {4 * size, size}, gates, Role::weight);
  weights.input_bias = parameters.add(name + ".bias_ih_l0", {4 * size}, Role::bias);
  weights.hidden_bias = parameters.add(name + ".bias_hh_l0", {4 * size}, Role::bias);
  return weights;
}

ops::QrnnWeights qrnn_weights(Parameters& parameters, const std::string& name, int64_t columns, int64_t size) {
  const std::vector<int64_t> gates(3, size);
  ops::QrnnWeights weights;
  weights.weight = parameters.add_stacked(name + ".weight", {3 * size, columns}, gates, Role::weight);
  weights.bias = parameters.add(name + ".bias", {3 * size}, Role::bias);
  return weights;
}

}  // namespace

RecurrentLayer::RecurrentLayer(Parameters& parameters, const std::string& cell, int64_t number, int64_t in,
                               int64_t size)
    : name_(fmt::format("{}.{}", cell, number)), in_(in), size_(size) {
  if (cell == "qrnn") {
    const int64_t window = number == 0 ? 2 : 1;
    weights_ = qrnn_weights(parameters, name_, window * in, size);
  } else {
    weights_ = lstm_weights(parameters, name_, in, size);
  }
}

RecurrentLayer::Result RecurrentLayer::operator()(const Tensor& x, const RecurrentState& start, const Ragged& layout,
                                                  const std::function<Tensor(const Tensor&)>& drop) const {
  if (const auto* quasi = std::get_if<ops::QrnnWeights>(&weights_)) {
    ops::QrnnWeights weights = *quasi;
    if (drop) weights.weight = drop(weights.weight);
    const ops::QrnnResult result = ops::qrnn(x, weights, {start.cell, start.input}, layout);
    return {result.hidden, {.cell = result.last.cell, .input = result.last.input}};
  }
  ops::LstmWeights weights = std::get<ops::LstmWeights>(weights_);
  if (drop) weights.hidden = drop(weights.hidden);
  const ops::LstmResult result = ops::lstm(x, weights, {start.hidden, start.cell}, layout);
  return {result.hidden, {.hidden = result.last.hidden, .cell = result.last.cell}};
}

int64_t RecurrentLayer::width(RecurrentPart part) const {
  if (part == &RecurrentState::cell) return size_;
  const auto* quasi = std::get_if<ops::QrnnWeights>(&weights_);
  if (part == &RecurrentState::hidden) return quasi == nullptr ? size_ : 0;
  return quasi != nullptr && quasi->weight.size(1) == 2 * in_ ? in_ : 0;
}

}  // namespace plumb
