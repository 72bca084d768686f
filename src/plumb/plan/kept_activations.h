// Memory that the layers of a decoder keep from the forward pass for the backward pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plumb/model/config.h"

namespace plumb::plan {

/// The batch that a process computes in one pass.
struct LocalBatch {
  int64_t sequences = 1;
  int64_t length = 1;       // tokens of each
  bool rounded = false;     // train.precision = "bf16"
  bool recomputed = false;  // train.recompute

  [[nodiscard]] int64_t tokens() const { return sequences * length; }
};

/// Bytes.
struct KeptActivations {
  double layers = 0;   // of all layers, until the backward pass reaches each
  double weights = 0;  // kept by layers independently of the batch: their matrices rounded to bfloat16
  double output = 0;   // the gradients of the last states and of the output matrix, computed by the cross-entropy
  double working = 0;  // temporary memory of the last layer or of the cross-entropy, whichever needs more
  double again = 0;    // of the layer whose activations the backward pass computes again

  [[nodiscard]] double total() const { return layers + weights + output + std::max(working, again); }
};

/// Measured on models of one and two layers with a small vocabulary, on one and two sequences: L layers keep
/// c + n·e + L·(w + n·k) bytes of n sequences of the same length. The gradients within the cross-entropy and working
/// memory are computed. Throws Error for models that are not
/// decoders, and for fast weights, which keep more of a long text than of short ones.
KeptActivations kept_activations(const ModelConfig& config, const LocalBatch& batch);

}  // namespace plumb::plan
