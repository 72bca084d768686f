// The cost of a model: parameters and floating-point operations, from its configuration, without allocating it.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/options.h"
#include "plumb/model/config.h"
#include "plumb/model/flops.h"

namespace plumb::plan {

/// Counts of a model. For an encoder-decoder model, a token means one on each side, with sequences of equal length.
struct ModelCost {
  int64_t parameters = 0;
  int64_t embeddings = 0;       // of them: tables of tokens, positions and segments, and an unshared output matrix
  int64_t output_matrix = 0;    // of them: an unshared output matrix, or 0
  int64_t layers = 0;           // of all stacks
  int64_t attentions = 0;       // sub-layers of attention: a decoder with cross-attention has two per layer
  double layer_parameters = 0;  // mean over layers
  int64_t outputs = 0;          // classes of the output: the vocabulary, or labels
  int64_t d_model = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t feed_forward = 0;
  bool gated = false;      // three matrices in the feed-forward sub-layer instead of two
  bool quadratic = false;  // softmax attention: its cost per token grows with the length of the sequence
  bool dropout = false;

  double output_flops = 0;  // of the output matrix in a forward pass, 2·d·V per token
  FlopCounter flops{};      // what they and the operations below are counted with, as `plumb train` counts its own

  /// Of one attention sub-layer in a forward pass, per token of a sequence of this length, besides its projections;
  /// mean over the sub-layers. Softmax, queries times keys and weights times values: 4·s·(heads·head size), half of it
  /// if causal.
  [[nodiscard]] double attention_flops(int64_t sequence) const;

  /// Of all layers in a forward pass, per token.
  [[nodiscard]] double layers_flops(int64_t sequence) const;

  /// Of the whole model per token, forward and backward pass, where the latter costs twice the former.
  [[nodiscard]] double training_flops(int64_t sequence) const;
};

/// Declares the model without allocating it, and counts. Throws Error on an invalid configuration, and for recurrent
/// models; vocabularies must be given.
ModelCost cost_of(const ModelConfig& config);

/// The bytes of an optimizer's state for a model, counted on tensors without memory.
double optimizer_bytes(const ModelConfig& config, const std::string& optimizer, const VariantOptions& options);

}  // namespace plumb::plan
