// The configuration of a model: the [model] section.
#pragma once

#include <string>

#include "plumb/base/config.h"
#include "plumb/base/options.h"
#include "plumb/nn/depth.h"
#include "plumb/nn/lora.h"

namespace plumb {

struct ModelConfig {
  std::string kind = "encoder-decoder";  // or "decoder", "encoder", "awd-lstm"
  std::string residual = "pre-ln";       // a residual scheme, or tensor2tensor's "preprocess/postprocess"
  bool parallel = false;                 // self-attention and feed-forward side by side
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::string attention = "softmax";
  std::string attention_bias = "all";  // "all", "qkv" (all but the output), "none"
  bool attention_gate = false;         // multiplies the output of attention by σ(W_g·x)
  std::string qk_norm = "none";        // a norm over each head's queries and keys
  bool value_residual = false;
  std::string positions = "sinusoidal";
  int64_t max_positions = 512;      // learned positions only
  std::string activation = "relu";  // kind of feed-forward sub-layer
  int64_t d_model = 128;
  int64_t feed_forward = 256;
  bool feed_forward_bias = true;
  int64_t heads = 4;
  int64_t kv_heads = 0;   // key and value heads, each shared by a group; 0: heads
  int64_t head_size = 0;  // 0: d_model/heads
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  int64_t source_vocabulary = 0;  // 0: taken from the data
  int64_t target_vocabulary = 0;
  std::string share_embeddings = "target";  // "none", "target" (target and output), "all" (source too)
  double embedding_factor = 0;              // multiplies token embeddings; 0: √d_model
  bool embedding_norm = false;              // normalizes the sum of all embeddings
  int64_t segments = 0;                     // in the source; 0: no segment embeddings
  bool output_bias = false;
  bool output_transform = false;  // a dense layer, GELU and a norm before the output over the vocabulary (encoders)
  std::string pooling = "first";  // encoders, and language models with labels
  bool pooler = false;            // applies tanh(W·x + b) to the pooled vector
  int64_t labels = 0;             // 0: taken from the data (encoder), or a language model
  int64_t embedding_size = 400;   // awd-lstm only, like the next two
  int64_t hidden_size = 1150;
  int64_t layers = 3;
  std::string initialization = "xavier-uniform";
  double dropout = 0.1;
  LoraOptions lora;        // adapters of a Transformer's attentions
  VariantOptions options;  // options of variants: [model.rotary], [model.favor], …

  /// Whether both describe the same model; absent options equal their defaults.
  bool operator==(const ModelConfig& other) const;
};

void describe(Fields& field, ModelConfig& config);

/// The number of layers in each stack. Recurrent layers count as a decoder's.
ModelDepth depth_of(const ModelConfig& config);

/// The vocabulary size of the encoder: that of the target for an encoder-only model without a source vocabulary.
int64_t source_vocabulary_of(const ModelConfig& config);

/// The number of features that the output layer reads: d_model, or the embedding size of a recurrent model.
int64_t width_of(const ModelConfig& config);

/// Whether models of this kind predict each token from the previous ones: "decoder" and "awd-lstm".
bool is_language_model(const std::string& kind);

/// Whether models of this kind continue a text from the state left by the previous batch (ForwardContext::carry).
bool carries_state(const std::string& kind);

/// Throws Error on invalid sizes or names.
void validate(const ModelConfig& config);

/// Throws Error if the model is of another kind.
void require_kind(const ModelConfig& config, const std::string& kind);

}  // namespace plumb
