// How deep a model is: what some residual schemes and initializations depend on.
#pragma once

#include <cstdint>

namespace plumb {

/// Layers of the stacks; 0 where the model has none of a kind. An encoder-only or decoder-only model has one.
struct ModelDepth {
  int64_t encoder_layers = 0;
  int64_t decoder_layers = 0;
};

}  // namespace plumb
