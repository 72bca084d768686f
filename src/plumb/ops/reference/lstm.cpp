#include <vector>

#include "plumb/ops/blocks.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {
namespace {

/// Joins the states of ended sequences, highest ranks first, in order of rank.
Tensor in_order_of_length(const std::vector<Tensor>& ended) {
  return at::cat(std::vector<Tensor>(ended.rbegin(), ended.rend()), 0);
}

/// c_t and h_t of several sequences from the sums of their gates, (rows, 4·size), and c_{t−1}.
LstmState next_state(const Tensor& gates, const Tensor& cell) {
  const std::vector<Tensor> parts = gates.chunk(4, 1);
  const Tensor next = at::sigmoid(parts[1]) * cell + at::sigmoid(parts[0]) * at::tanh(parts[2]);
  return {at::sigmoid(parts[3]) * at::tanh(next), next};
}

}  // namespace

LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout) {
  // Blocks of one position: at step t, the rows of the sequences that have a position t are adjacent and come first.
  const Blocks steps(layout, 1);
  // Linear layers are differentiable to any order, and apply the precision and packed weights.
  const Tensor from_input = ops::linear(x, weights.input, weights.input_bias + weights.hidden_bias);
  Tensor hidden = steps.sorted(start.hidden);
  Tensor cell = steps.sorted(start.cell);
  std::vector<Tensor> outputs;
  std::vector<Tensor> ended_hidden, ended_cell;  // of sequences without further positions, highest ranks first
  for (const Tensor& input : steps.by_number(steps.cut(from_input.unsqueeze(1)), 1)) {
    const int64_t rows = input.size(0);
    if (rows < hidden.size(0)) {
      const int64_t ended = hidden.size(0) - rows;
      ended_hidden.push_back(hidden.narrow(0, rows, ended));
      ended_cell.push_back(cell.narrow(0, rows, ended));
      hidden = hidden.narrow(0, 0, rows);
      cell = cell.narrow(0, 0, rows);
    }
    const LstmState next = next_state(input.squeeze(1) + ops::linear(hidden, weights.hidden, Tensor()), cell);
    hidden = next.hidden;
    cell = next.cell;
    outputs.push_back(hidden);
  }
  ended_hidden.push_back(hidden);
  ended_cell.push_back(cell);
  return {steps.join(at::cat(outputs, 0).unsqueeze(1), 1).squeeze(1),
          {steps.unsorted(in_order_of_length(ended_hidden)), steps.unsorted(in_order_of_length(ended_cell))}};
}

}  // namespace plumb::ops::reference
