// The layers of a recurrent language model: LSTM (ops/lstm.h).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "plumb/nn/parameters.h"
#include "plumb/ops/lstm.h"

namespace plumb {

/// The parts of a layer's state by name.
using RecurrentPart = Tensor ops::LstmState::*;
inline constexpr std::array<std::pair<const char*, RecurrentPart>, 2> kRecurrentParts = {
    {{"hidden", &ops::LstmState::hidden}, {"cell", &ops::LstmState::cell}}};

class RecurrentLayer {
 public:
  /// Layer `number` of a model, (tokens, in) → (tokens, size). Parameters: lstm.i.{weight_ih_l0, weight_hh_l0,
  /// bias_ih_l0, bias_hh_l0}, as in torch.nn.LSTM.
  RecurrentLayer(Parameters& parameters, int64_t number, int64_t in, int64_t size);

  /// `start`: the initial states of the sequences; undefined parts are zeros. `drop`, if not empty, maps the
  /// hidden-to-hidden matrix to the one that a training step uses instead.
  [[nodiscard]] ops::LstmResult operator()(const Tensor& x, const ops::LstmState& start, const Ragged& layout,
                                           const std::function<Tensor(const Tensor&)>& drop) const;

  /// "lstm.3": the prefix of its parameters and of its carried state.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The number of columns of its output and of each part of its state.
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  std::string name_;
  int64_t size_;
  ops::LstmWeights weights_;
};

}  // namespace plumb
