// The layers of a recurrent language model: LSTM (ops/lstm.h) or QRNN (ops/qrnn.h).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "plumb/nn/parameters.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/qrnn.h"

namespace plumb {

/// The state of a layer, one row per sequence; parts that the layer does not have are undefined.
struct RecurrentState {
  Tensor hidden{};  // h, (sequences, size): LSTM
  Tensor cell{};    // c, (sequences, size)
  Tensor input{};   // the last x, (sequences, in): QRNN with a window of 2
};

/// The parts of a state by name.
using RecurrentPart = Tensor RecurrentState::*;
inline constexpr std::array<std::pair<const char*, RecurrentPart>, 3> kRecurrentParts = {
    {{"hidden", &RecurrentState::hidden}, {"cell", &RecurrentState::cell}, {"input", &RecurrentState::input}}};

class RecurrentLayer {
 public:
  /// Layer `number` of a model, (tokens, in) → (tokens, size); `cell` is "lstm" or "qrnn". Parameters:
  /// lstm.i.{weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0}, as in torch.nn.LSTM; or qrnn.i.{weight, bias}, with a
  /// window of 2 in the first layer and 1 in the others, as in Merity et al. 2018, arXiv 1803.08240.
  RecurrentLayer(Parameters& parameters, const std::string& cell, int64_t number, int64_t in, int64_t size);

  struct Result {
    Tensor hidden;        // (tokens, size)
    RecurrentState last;  // after the last position of each sequence
  };
  /// `start`: the initial states of the sequences; undefined parts are zeros. `drop`, if not empty, maps weights to
  /// those that a training step uses instead: the hidden-to-hidden matrix of an LSTM, the whole matrix of a QRNN.
  [[nodiscard]] Result operator()(const Tensor& x, const RecurrentState& start, const Ragged& layout,
                                  const std::function<Tensor(const Tensor&)>& drop) const;

  /// "lstm.3": the prefix of its parameters and of its carried state.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The number of columns of a part of the state; 0 if the layer does not have it.
  [[nodiscard]] int64_t width(RecurrentPart part) const;

 private:
  std::string name_;
  int64_t in_;
  int64_t size_;
  std::variant<ops::LstmWeights, ops::QrnnWeights> weights_;
};

}  // namespace plumb
