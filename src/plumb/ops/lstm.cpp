#include "plumb/ops/lstm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/precision.h"

namespace plumb::ops {
namespace {

void require_shape(const char* what, const Tensor& tensor, at::IntArrayRef shape) {
  if (tensor.defined() && tensor.sizes() == shape) return;
  const auto text = [](at::IntArrayRef sizes) { return fmt::format("({})", fmt::join(sizes.vec(), ", ")); };
  throw Error(fmt::format("LSTM: {} has the shape {}, not {}", what,
                          tensor.defined() ? text(tensor.sizes()) : std::string("(undefined)"), text(shape)));
}

void check_shapes(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout) {
  if (!weights.hidden.defined() || weights.hidden.dim() != 2 || weights.hidden.numel() == 0)
    throw Error("LSTM: the recurrent weight is not a matrix");
  const int64_t size = weights.hidden.size(1);
  if (x.dim() != 2) throw Error("LSTM: the input is not a matrix");
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

}  // namespace

LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout) {
  check_shapes(x, weights, start, layout);
  const int64_t size = weights.hidden.size(1);
  LstmState state = start;
  if (!state.hidden.defined()) {
    state.hidden = at::zeros({layout.sequences(), size}, x.options());
    state.cell = at::zeros_like(state.hidden);
  }
  if (layout.tokens() == 0) return {at::zeros({0, size}, x.options()), state};
  static constexpr Operation kLstm("LSTM", PLUMB_FUSED(lstm), &reference::lstm);
  // The reference uses linear layers, which multiply by packed weights.
  const Path path = packing_for(x) == nullptr ? path_of({x, weights.hidden, state.hidden}) : Path::reference;
  return kLstm(path, x, weights, state, layout);
}

}  // namespace plumb::ops
