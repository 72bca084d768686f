// The depth of a model, on which some residual schemes and initializations depend.
#pragma once

#include <cstdint>

namespace plumb {

/// Number of layers in each stack; 0 if the model lacks that stack. An encoder-only or decoder-only model has one
/// stack.
struct ModelDepth {
  int64_t encoder_layers = 0;
  int64_t decoder_layers = 0;
};

}  // namespace plumb
