// The layers that Llama and Qwen have in common: RMSNorm before each sub-layer, rotary positions on the halves of a
// head, grouped heads, a gated feed-forward sub-layer. StableLM's tensors have the same names.
#pragma once

#include "plumb/interop/family.h"

namespace plumb {

/// Reads all keys except those of attention_bias, feed_forward_bias and qk_norm, in which the families differ. `theta`
/// and `head_size` (0: d_model/heads) are defaults.
ModelConfig llama_like_configuration(Settings& settings, double theta, int64_t head_size = 0);

/// The reverse, with the same exceptions.
Json llama_like_settings(const ModelConfig& config);

/// Takes the tensors, with the biases and norms of the configuration; LayerNorm has a bias.
NamedTensors llama_like_tensors(const ModelConfig& config, Weights& weights);

/// Throws Error unless every layer attends to all earlier positions.
void require_full_attention(Settings& settings, const ModelConfig& config);

}  // namespace plumb
