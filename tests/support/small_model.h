// Small models of any kind.
#pragma once

#include <string>

#include "plumb/model/config.h"

namespace plumb::test {

/// A model with `layers` layers in each stack, or with two recurrent ones.
inline ModelConfig small_model(const std::string& kind, int64_t layers = 2, int64_t vocabulary = 12) {
  ModelConfig config;
  config.kind = kind;
  config.d_model = config.embedding_size = 8;
  config.feed_forward = config.hidden_size = 12;
  config.heads = config.layers = 2;
  config.encoder_layers = config.decoder_layers = layers;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.max_positions = 24;
  if (kind == "encoder") config.labels = 3;
  return config;
}

/// One that learns tiny data, which complete its configuration; `pooling` is that of an encoder.
inline ModelConfig small_learner(const std::string& kind, int64_t layers = 1, const std::string& pooling = "first") {
  ModelConfig config;
  config.kind = kind;
  config.pooling = pooling;
  config.d_model = 16;
  config.feed_forward = 32;
  config.heads = 2;
  config.encoder_layers = config.decoder_layers = config.layers = layers;
  config.embedding_size = 10;
  config.hidden_size = 14;
  config.dropout = 0;
  return config;
}

}  // namespace plumb::test
