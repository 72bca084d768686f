// What a model is: the [model] section of a configuration.
#pragma once

#include <string>

#include "plumb/base/config.h"
#include "plumb/nn/depth.h"

namespace plumb {

struct ModelConfig {
  std::string kind = "encoder-decoder";  // or "decoder"
  std::string residual = "pre-ln";       // a residual scheme, or tensor2tensor's "preprocess/postprocess"
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::string attention = "softmax";
  std::string qk_norm = "none";  // a norm over each head's queries and keys
  int64_t favor_features = 0;    // of `favor`: random features a head; 0: size·ln(size)
  int64_t favor_redraw = 1000;   // of `favor`: steps after which they are drawn anew; 0: never
  int64_t dpfp_nu = 3;           // of `dpfp` and `delta`: ν
  std::string positions = "sinusoidal";
  int64_t max_positions = 512;  // learned positions only
  std::string activation = "relu";
  int64_t d_model = 128;
  int64_t feed_forward = 256;
  int64_t heads = 4;
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  int64_t source_vocabulary = 0;  // 0: that of the data
  int64_t target_vocabulary = 0;
  std::string share_embeddings = "target";  // "none", "target" (target and output), "all" (source too)
  std::string initialization = "xavier-uniform";
  double dropout = 0.1;

  bool operator==(const ModelConfig&) const = default;
};

void describe(Fields& field, ModelConfig& config);

/// The layers of its stacks; a decoder-only model has no encoder.
ModelDepth depth_of(const ModelConfig& config);

/// Throws Error on sizes or names that make no model.
void validate(const ModelConfig& config);

}  // namespace plumb
