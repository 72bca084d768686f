// What Plumb's own kernels keep of a forward pass for the backward pass.
#pragma once

#include <cstdint>

#include "plumb/model/config.h"

namespace plumb::plan {

/// What a process computes at once.
struct LocalBatch {
  int64_t sequences = 1;
  int64_t length = 1;    // tokens of each
  bool rounded = false;  // train.precision = "bf16"

  [[nodiscard]] int64_t tokens() const { return sequences * length; }
};

/// Bytes.
struct KeptActivations {
  double layers = 0;   // of all layers, until the backward pass reaches each
  double weights = 0;  // their matrices rounded to bfloat16
  double output = 0;   // the gradients of the last states and of the output matrix, which the cross-entropy computes
  double working = 0;  // what the last layer and the cross-entropy need beside these for a while

  [[nodiscard]] double total() const { return layers + weights + output + working; }
};

/// For a decoder of T tokens in sequences of s. A float32 has 4 bytes; an operand of a matrix product has e = 4, or 2
/// in bfloat16. With d, f, w = heads·size and k = kv_heads·size, each token and layer keeps
///   attention     4·(d + 2) + e·d + 4·(w + 2k) + e·w   input and statistics of the norm, x, queries to values, mixed
///   feed-forward  4·(d + 2) + e·d + inner              with inner = 4f for ReLU in float32, whose result is its mask
///                                                      and the next operand, 6f in bfloat16, (4 + e)·f for other
///                                                      activations, (12 + e)·f if gated, with a second e·d in bfloat16
/// and nothing of dropout, whose masks are recomputed, of residual sums, or of attention's weights. Positions of
/// Transformer-XL add 4·T·(2w + heads) + 4·s·w per layer, for the queries with either bias, a sum for each head, and
/// the projected distances, and 4·T·w in bfloat16, where the result has a rounded copy; rotated positions keep 4·T·size
/// in all. Pre-LN adds a last norm, 4·(d + 2). Throws Error for models whose layers keep something else.
KeptActivations kept_activations(const ModelConfig& config, const LocalBatch& batch);

}  // namespace plumb::plan
