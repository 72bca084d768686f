// Memory that Plumb's own kernels keep from the forward pass for the backward pass.
#pragma once

#include <cstdint>

#include "plumb/model/config.h"

namespace plumb::plan {

/// The batch that a process computes in one pass.
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
  double output = 0;   // the gradients of the last states and of the output matrix, computed by the cross-entropy
  double working = 0;  // temporary memory of the last layer or of the cross-entropy, whichever needs more

  [[nodiscard]] double total() const { return layers + weights + output + working; }
};

/// For a decoder of T tokens in sequences of s. A float32 has 4 bytes; an operand of a matrix product has e = 4, or 2
/// in bfloat16. With d, f, w = heads·size and k = kv_heads·size, each token and layer keeps
///   attention     4·(d + 2) + e·d + 4·(w + 2k) + e·w   input and statistics of the norm, x, queries to values, mixed
///   feed-forward  4·(d + 2) + e·d + inner              with inner = 4f for ReLU in float32, whose result is its mask
///                                                      and the next operand, 6f in bfloat16, (4 + e)·f for other
///                                                      activations, (12 + e)·f if gated, with a second e·d in bfloat16
/// Dropout, whose masks are recomputed, residual sums and attention weights keep nothing. Positions of Transformer-XL
/// add 4·T·(2w + heads) + 4·s·w per layer, for the queries with either bias, a sum for each head, and the projected
/// distances, and in bfloat16 4·T·w, for the float32 result besides its rounded copy; rotary positions keep 4·T·size in
/// total. Pre-LN adds the final norm, 4·(d + 2) per token. Throws Error for models with other layers.
KeptActivations kept_activations(const ModelConfig& config, const LocalBatch& batch);

}  // namespace plumb::plan
