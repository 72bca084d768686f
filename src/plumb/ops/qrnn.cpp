#include "plumb/ops/qrnn.h"

#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/ops/blocks.h"
#include "plumb/ops/device.h"
#include "plumb/ops/index.h"
#include "plumb/ops/linear.h"

namespace plumb::ops {
namespace {

/// Throws Error unless `fits`: whether `what` has the required shape.
void require_qrnn(bool fits, const char* what) {
  if (!fits) throw Error(std::string("QRNN: the shape of ") + what + " does not fit");
}

/// Whether a tensor is defined and has this shape.
bool has_shape(const Tensor& tensor, at::IntArrayRef shape) { return tensor.defined() && tensor.sizes() == shape; }

/// Checks all shapes and returns the window.
int64_t checked_window(const Tensor& x, const QrnnWeights& weights, const QrnnState& start, const Ragged& layout) {
  require_qrnn(x.dim() == 2 && x.size(0) == layout.tokens() && x.size(1) > 0, "the input");
  const int64_t in = x.size(1);
  const Tensor& weight = weights.weight;
  require_qrnn(weight.defined() && weight.dim() == 2 && weight.size(0) % 3 == 0, "the weight");
  require_qrnn(weight.size(1) == in || weight.size(1) == 2 * in, "the weight");
  require_qrnn(has_shape(weights.bias, {weight.size(0)}), "the bias");
  const int64_t window = weight.size(1) / in;
  const int64_t sequences = layout.sequences();
  if (start.cell.defined() || start.input.defined()) {
    require_qrnn(has_shape(start.cell, {sequences, weight.size(0) / 3}), "the cell state");
    require_qrnn(window == 1 || has_shape(start.input, {sequences, in}), "the last input");
  }
  require_one_device("QRNN", x, weight, weights.bias, start.cell, start.input);
  return window;
}

/// The initial rows of all sequences, (sequences, width), followed by the rows of all positions, (tokens, width).
class StateRows {
 public:
  StateRows(const Tensor& before, const Tensor& of_positions, const Ragged& layout)
      : rows_(at::cat({before, of_positions}, 0)), layout_(layout) {}

  /// The row of position t − 1 for each position t: (tokens, width).
  [[nodiscard]] Tensor previous() const {
    std::vector<int64_t> ids;
    for (int64_t s = 0; s < layout_.sequences(); ++s) {
      for (int64_t t = 0; t < layout_.length(s); ++t)
        ids.push_back(t == 0 ? s : layout_.sequences() + layout_.begin(s) + t - 1);
    }
    return rows_.index_select(0, index_beside(rows_, ids));
  }

  /// The row of the last position of each sequence, or its initial row if it is empty: (sequences, width).
  [[nodiscard]] Tensor last() const {
    std::vector<int64_t> ids;
    for (int64_t s = 0; s < layout_.sequences(); ++s)
      ids.push_back(layout_.length(s) == 0 ? s : layout_.sequences() + layout_.begin(s + 1) - 1);
    return rows_.index_select(0, index_beside(rows_, ids));
  }

 private:
  Tensor rows_;
  const Ragged& layout_;
};

/// c of every position, (tokens, size): c_t = keep_t·c_{t−1} + added_t.
Tensor pooled(const Tensor& keep, const Tensor& added, const Tensor& start, const Ragged& layout) {
  const int64_t size = keep.size(1);
  // Blocks of one position: at step t, the rows of the sequences that have a position t are adjacent and come first.
  const Blocks steps(layout, 1);
  Tensor cell = steps.sorted(start);
  std::vector<Tensor> cells;
  for (const Tensor& step : steps.by_number(steps.cut(at::cat({keep, added}, 1).unsqueeze(1)), 1)) {
    const std::vector<Tensor> terms = step.squeeze(1).split_with_sizes({size, size}, 1);
    cell = terms[0] * cell.narrow(0, 0, step.size(0)) + terms[1];
    cells.push_back(cell);
  }
  return steps.join(at::cat(cells, 0).unsqueeze(1), 1).squeeze(1);
}

}  // namespace

QrnnResult qrnn(const Tensor& x, const QrnnWeights& weights, const QrnnState& start, const Ragged& layout) {
  const int64_t window = checked_window(x, weights, start, layout);
  const int64_t size = weights.weight.size(0) / 3;
  QrnnState state = start;
  if (!state.cell.defined()) {
    state.cell = at::zeros({layout.sequences(), size}, x.options());
    if (window == 2) state.input = at::zeros({layout.sequences(), x.size(1)}, x.options());
  }
  if (layout.tokens() == 0) return {at::zeros({0, size}, x.options()), state};
  QrnnResult result;
  Tensor read = x;
  if (window == 2) {
    const StateRows inputs(state.input, x, layout);
    read = at::cat({x, inputs.previous()}, 1);
    result.last.input = inputs.last();
  }
  const std::vector<Tensor> gates =
      ops::linear(read, weights.weight, weights.bias).split_with_sizes({size, size, size}, 1);
  const Tensor forget = at::sigmoid(gates[1]);
  const Tensor cell = pooled(forget, (1 - forget) * at::tanh(gates[0]), state.cell, layout);
  result.hidden = at::sigmoid(gates[2]) * cell;
  result.last.cell = StateRows(state.cell, cell, layout).last();
  return result;
}

}  // namespace plumb::ops
