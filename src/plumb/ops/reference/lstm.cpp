#include <vector>

#include "plumb/ops/blocks.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {
namespace {

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
  RunningStates hidden(steps.sorted(start.hidden)), cell(steps.sorted(start.cell));
  std::vector<Tensor> outputs;
  for (const Tensor& input : steps.by_number(steps.cut(from_input.unsqueeze(1)), 1)) {
    const int64_t rows = input.size(0);
    const Tensor sums = input.squeeze(1) + ops::linear(hidden.first(rows), weights.hidden, Tensor());
    const LstmState next = next_state(sums, cell.first(rows));
    hidden.set(next.hidden);
    cell.set(next.cell);
    outputs.push_back(next.hidden);
  }
  return {steps.join(at::cat(outputs, 0).unsqueeze(1), 1).squeeze(1),
          {steps.unsorted(hidden.last()), steps.unsorted(cell.last())}};
}

}  // namespace plumb::ops::reference
