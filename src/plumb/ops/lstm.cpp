#include "plumb/ops/lstm.h"

#include <fmt/format.h>

#include <vector>

#include "plumb/base/error.h"
#include "plumb/ops/blocks.h"
#include "plumb/ops/device.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/reference/reference.h"

namespace plumb::ops {
namespace {

void require_shape(const char* what, const Tensor& tensor, at::IntArrayRef shape) {
  if (tensor.defined() && tensor.sizes() == shape) return;
  const auto text = [](at::IntArrayRef sizes) { return fmt::format("({})", fmt::join(sizes.vec(), ", ")); };
  throw Error(fmt::format("LSTM: {} has the shape {}, not {}", what,
                          tensor.defined() ? text(tensor.sizes()) : std::string("of nothing"), text(shape)));
}

void check_shapes(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout) {
  if (!weights.hidden.defined() || weights.hidden.dim() != 2) throw Error("LSTM: the recurrent weights are no matrix");
  const int64_t size = weights.hidden.size(1);
  if (x.dim() != 2) throw Error("LSTM: the input is no matrix");
  require_shape("the input", x, {layout.tokens(), x.size(1)});
  require_shape("the input's weight", weights.input, {4 * size, x.size(1)});
  require_shape("the recurrent weight", weights.hidden, {4 * size, size});
  require_shape("the input's bias", weights.input_bias, {4 * size});
  require_shape("the recurrent bias", weights.hidden_bias, {4 * size});
  if (start.hidden.defined() || start.cell.defined()) {
    require_shape("the hidden state", start.hidden, {layout.sequences(), size});
    require_shape("the cell state", start.cell, {layout.sequences(), size});
  }
  require_one_device("LSTM", x, weights.input, weights.hidden, weights.input_bias, weights.hidden_bias, start.hidden,
                     start.cell);
}

/// The states of sequences in the order in which they ended, of which the last ones were first.
Tensor in_order_of_length(const std::vector<Tensor>& ended) {
  return at::cat(std::vector<Tensor>(ended.rbegin(), ended.rend()), 0);
}

}  // namespace

LstmState lstm_cell(const Tensor& gates, const Tensor& cell) { return reference::lstm_cell(gates, cell); }

LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout) {
  check_shapes(x, weights, start, layout);
  const int64_t size = weights.hidden.size(1);
  LstmState state = start;
  if (!state.hidden.defined()) {
    state.hidden = at::zeros({layout.sequences(), size}, x.options());
    state.cell = at::zeros_like(state.hidden);
  }
  if (layout.tokens() == 0) return {at::zeros({0, size}, x.options()), state};

  // Blocks of one position: at step t, the sequences that have a position t are adjacent, and the first ones.
  const Blocks steps(layout, 1);
  const Tensor from_input = linear(x, weights.input, weights.input_bias + weights.hidden_bias);
  Tensor hidden = steps.sorted(state.hidden);
  Tensor cell = steps.sorted(state.cell);
  std::vector<Tensor> outputs;
  std::vector<Tensor> ended_hidden, ended_cell;  // of sequences that have no further position, last ones first
  for (const Tensor& input : steps.by_number(steps.cut(from_input.unsqueeze(1)), 1)) {
    const int64_t rows = input.size(0);
    if (rows < hidden.size(0)) {
      const int64_t ended = hidden.size(0) - rows;
      ended_hidden.push_back(hidden.narrow(0, rows, ended));
      ended_cell.push_back(cell.narrow(0, rows, ended));
      hidden = hidden.narrow(0, 0, rows);
      cell = cell.narrow(0, 0, rows);
    }
    const LstmState next = lstm_cell(input.squeeze(1) + linear(hidden, weights.hidden, Tensor()), cell);
    hidden = next.hidden;
    cell = next.cell;
    outputs.push_back(hidden);
  }
  ended_hidden.push_back(hidden);
  ended_cell.push_back(cell);
  return {steps.join(at::cat(outputs, 0).unsqueeze(1), 1).squeeze(1),
          {steps.unsorted(in_order_of_length(ended_hidden)), steps.unsorted(in_order_of_length(ended_cell))}};
}

}  // namespace plumb::ops
