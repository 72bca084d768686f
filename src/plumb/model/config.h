// The configuration of a model: the [model] section.
#pragma once

#include <string>

#include "plumb/base/config.h"
#include "plumb/base/options.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/layer_id.h"
#include "plumb/nn/lora.h"
#include "plumb/nn/model_depth.h"
#include "plumb/ops/attention.h"

namespace plumb {

struct ModelConfig {
  std::string kind = "encoder-decoder";
  std::string residual = "pre-ln";        // a residual scheme, or tensor2tensor's "preprocess/postprocess"
  std::string encoder_residual = "same";  // of an encoder-decoder
  bool center_memory = false;
  bool parallel = false;
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::string attention = "softmax";
  std::string attention_bias = "all";
  bool attention_gate = false;
  std::string qk_norm = "none";
  bool value_residual = false;
  std::string positions = "sinusoidal";
  int64_t max_positions = 512;
  std::string activation = "relu";
  int64_t d_model = 128;
  int64_t feed_forward = 256;
  bool feed_forward_bias = true;
  int64_t heads = 4;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  int64_t source_vocabulary = 0;
  int64_t target_vocabulary = 0;
  std::string share_embeddings = "target";
  double embedding_factor = 0;
  bool embedding_norm = false;
  int64_t segments = 0;
  bool output_bias = false;
  bool output_transform = false;
  std::string pooling = "first";
  bool pooler = false;
  int64_t labels = 0;
  int64_t embedding_size = 400;  // awd-lstm only, like the next two
  int64_t hidden_size = 1150;
  int64_t layers = 3;
  std::string initialization = "xavier-uniform";
  std::string encoder_initialization = "same";  // of an encoder-decoder
  InitializationScale initialization_scale;
  double dropout = 0.1;
  double attention_dropout = 0;
  double activation_dropout = 0;
  LoraOptions lora;        // adapters of a Transformer's matrices
  VariantOptions options;  // options of variants: [model.rotary], [model.favor], …

  /// Whether both describe the same model; absent options equal their defaults.
  bool operator==(const ModelConfig& other) const;
};

void describe(Fields& field, ModelConfig& config);

/// The number of layers in each stack. Recurrent layers count as a decoder's.
ModelDepth depth_of(const ModelConfig& config);

/// Whether a model of this kind has what a key of [model] counts or sizes: "layers" are an AWD-LSTM's, "encoder_layers"
/// those of a model with an encoder.
bool has_what_it_sets(const ModelConfig& config, std::string_view key);

/// The residual scheme of one stack.
const std::string& residual_of(const ModelConfig& config, StackKind stack);

/// The vocabulary size of the encoder: that of the target for an encoder-only model without a source vocabulary.
int64_t source_vocabulary_of(const ModelConfig& config);

/// The vocabulary size of the texts that a model classifies, embeds or continues: the source's for an encoder, the
/// target's for others.
int64_t text_vocabulary_of(const ModelConfig& config);

/// The heads of each attention of a Transformer.
ops::HeadShape heads_of(const ModelConfig& config);

/// The number of features that the output layer reads: d_model, or the embedding size of a recurrent model.
int64_t width_of(const ModelConfig& config);

/// Throws Error on values out of range, or that contradict each other.
void validate(const ModelConfig& config);

/// Throws Error if the model is of another kind.
void require_kind(const ModelConfig& config, const std::string& kind);

}  // namespace plumb
