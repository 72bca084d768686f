// A small model of any kind for tests of fine-tuning, and its layers by parameter name.
#pragma once

#include <string>

#include "plumb/model/config.h"

namespace plumb::test {

inline ModelConfig small_model(const std::string& kind) {
  ModelConfig config;
  config.kind = kind;
  config.pooling = kind == "encoder" ? "none" : "first";
  config.d_model = 16;
  config.feed_forward = 32;
  config.heads = 2;
  config.encoder_layers = config.decoder_layers = config.layers = 2;
  config.embedding_size = 10;
  config.hidden_size = 14;
  config.dropout = 0;
  return config;
}

/// Whether a Transformer's parameter belongs to this layer, from 0.
inline bool in_layer(const std::string& name, int layer) {
  return name.find(".layers." + std::to_string(layer) + ".") != std::string::npos;
}

}  // namespace plumb::test
