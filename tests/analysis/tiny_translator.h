// A translation model of one layer on each side, small enough for dense matrices of its parameters.
#pragma once

#include <memory>
#include <string>

#include "plumb/model/model.h"

namespace plumb::test {

inline ModelConfig tiny_translator(const std::string& residual = "post-ln") {
  ModelConfig config;
  config.residual = residual;
  config.d_model = 4;
  config.feed_forward = 5;
  config.heads = 2;
  config.encoder_layers = config.decoder_layers = 1;
  config.source_vocabulary = config.target_vocabulary = 8;
  return config;
}

/// A model in float64, initialized with a fixed seed.
inline std::unique_ptr<Model> initialized(const ModelConfig& config) {
  std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(5);
  return model;
}

}  // namespace plumb::test
