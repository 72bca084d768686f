// What a model is: the [model] section of a configuration.
#pragma once

#include <string>

#include "plumb/base/config.h"
#include "plumb/base/options.h"
#include "plumb/nn/depth.h"

namespace plumb {

struct ModelConfig {
  std::string kind = "encoder-decoder";  // or "decoder"
  std::string residual = "pre-ln";       // a residual scheme, or tensor2tensor's "preprocess/postprocess"
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::string attention = "softmax";
  std::string qk_norm = "none";  // a norm over each head's queries and keys
  std::string positions = "sinusoidal";
  int64_t max_positions = 512;      // learned positions only
  std::string activation = "relu";  // of the feed-forward sub-layer
  int64_t d_model = 128;
  int64_t feed_forward = 256;
  bool feed_forward_bias = true;
  int64_t heads = 4;
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  int64_t source_vocabulary = 0;  // 0: that of the data
  int64_t target_vocabulary = 0;
  std::string share_embeddings = "target";  // "none", "target" (target and output), "all" (source too)
  std::string initialization = "xavier-uniform";
  double dropout = 0.1;
  VariantOptions options;  // of variants that have some: [model.rotary], [model.favor], …

  /// Whether they make the same model: options left out are the same as their defaults.
  bool operator==(const ModelConfig& other) const;
};

void describe(Fields& field, ModelConfig& config);

/// The layers of its stacks; a decoder-only model has no encoder.
ModelDepth depth_of(const ModelConfig& config);

/// Throws Error on sizes or names that make no model.
void validate(const ModelConfig& config);

}  // namespace plumb
