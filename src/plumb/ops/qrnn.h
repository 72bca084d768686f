// Quasi-recurrent layers over ragged sequences.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// The parameters of one layer: rows of the candidate z, the forget gate f and the output gate o; columns of x_t and,
/// if the window is 2, then of x_{t−1}.
struct QrnnWeights {
  Tensor weight;  // W, (3·size, window·in)
  Tensor bias;    // b, (3·size)
};

/// The state of each sequence, one row per sequence. Undefined tensors mean zeros.
struct QrnnState {
  Tensor cell;   // c, (sequences, size)
  Tensor input;  // the last x, (sequences, in); undefined if the window is 1
};

struct QrnnResult {
  Tensor hidden;   // h of every position, (tokens, size)
  QrnnState last;  // after the last position of each sequence; an empty sequence keeps its state
};

/// One layer over the sequences of `layout`, each starting from its row of `start`:
///   (z, f, o) = W·(x_t; x_{t−1}) + b,
///   c_t = σ(f)·c_{t−1} + (1 − σ(f))·tanh(z),  h_t = σ(o)·c_t.
/// Bradbury et al. 2016, arXiv 1611.01576, section 2.1: fo-pooling. x: (tokens, in). There is one product for the whole
/// batch, in the precision set by a PrecisionGuard; only c is computed position by position. Differentiable to any
/// order in float32 and float64. Throws Error if shapes do not match, or the window is neither 1 nor 2.
QrnnResult qrnn(const Tensor& x, const QrnnWeights& weights, const QrnnState& start, const Ragged& layout);

}  // namespace plumb::ops
