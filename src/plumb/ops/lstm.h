// Long short-term memory over ragged sequences.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// The parameters of one layer, laid out as in torch.nn.LSTM: rows of the input gate i, the forget gate f, the
/// candidate g and the output gate o.
struct LstmWeights {
  Tensor input;        // W, (4·size, in)
  Tensor hidden;       // U, (4·size, size)
  Tensor input_bias;   // (4·size)
  Tensor hidden_bias;  // (4·size)
};

/// The state of each sequence, one row per sequence. Undefined tensors mean zeros.
struct LstmState {
  Tensor hidden;  // h, (sequences, size)
  Tensor cell;    // c, (sequences, size)
};

struct LstmResult {
  Tensor hidden;   // h of every position, (tokens, size)
  LstmState last;  // after the last position of each sequence; an empty sequence keeps its state
};

/// One layer over the sequences of `layout`, each starting from its row of `start`:
///   (i, f, g, o) = W·x_t + b_W + U·h_{t−1} + b_U,
///   c_t = σ(f)·c_{t−1} + σ(i)·tanh(g),  h_t = σ(o)·tanh(c_t).
/// Hochreiter & Schmidhuber 1997; with a forget gate, Gers et al. 2000. x: (tokens, in). W·x_t is one product for the
/// whole batch, as are the gradients of x, W and U. Uses the precision set by a PrecisionGuard. Differentiable to any
/// order in float32 and float64. Throws Error if shapes do not match.
LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout);

}  // namespace plumb::ops
