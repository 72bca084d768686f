// What a model is: the [model] section of a configuration.
#pragma once

#include <string>

#include "plumb/base/config.h"
#include "plumb/base/options.h"
#include "plumb/nn/depth.h"

namespace plumb {

struct ModelConfig {
  std::string kind = "encoder-decoder";  // or "decoder", "encoder"
  std::string residual = "pre-ln";       // a residual scheme, or tensor2tensor's "preprocess/postprocess"
  bool parallel = false;                 // self-attention and feed-forward side by side
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::string attention = "softmax";
  std::string attention_bias = "all";  // "all", "qkv" (none on the output), "none"
  std::string qk_norm = "none";        // a norm over each head's queries and keys
  bool value_residual = false;
  std::string positions = "sinusoidal";
  int64_t max_positions = 512;      // learned positions only
  std::string activation = "relu";  // of the feed-forward sub-layer
  int64_t d_model = 128;
  int64_t feed_forward = 256;
  bool feed_forward_bias = true;
  int64_t heads = 4;
  int64_t kv_heads = 0;   // that share keys and values; 0: heads
  int64_t head_size = 0;  // 0: d_model/heads
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  int64_t source_vocabulary = 0;  // 0: that of the data
  int64_t target_vocabulary = 0;
  std::string share_embeddings = "target";  // "none", "target" (target and output), "all" (source too)
  double embedding_factor = 0;              // on the embeddings of tokens; 0: √d_model
  bool embedding_norm = false;              // a norm of the sum of all embeddings
  int64_t segments = 0;                     // of the source; 0: no embeddings of segments
  bool output_bias = false;
  std::string pooling = "first";  // of an encoder
  bool pooler = false;            // tanh(W·x + b) of what is pooled
  int64_t labels = 0;             // of an encoder; 0: those of the data
  std::string initialization = "xavier-uniform";
  double dropout = 0.1;
  VariantOptions options;  // of variants that have some: [model.rotary], [model.favor], …

  /// Whether they make the same model: options left out are the same as their defaults.
  bool operator==(const ModelConfig& other) const;
};

void describe(Fields& field, ModelConfig& config);

/// The layers of its stacks; a decoder-only model has no encoder, an encoder-only one no decoder.
ModelDepth depth_of(const ModelConfig& config);

/// Tokens that its encoder knows: an encoder-only model goes by the target's if the source's are not given.
int64_t source_vocabulary_of(const ModelConfig& config);

/// Throws Error on sizes or names that make no model.
void validate(const ModelConfig& config);

/// Throws Error if the model is of another kind.
void require_kind(const ModelConfig& config, const std::string& kind);

}  // namespace plumb
