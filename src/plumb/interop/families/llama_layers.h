// The layers that Llama and Qwen have in common: RMSNorm before each sub-layer, rotary positions on the halves of a
// head, grouped heads, a gated feed-forward sub-layer. StableLM's tensors have the same names.
#pragma once

#include "plumb/interop/family.h"

namespace plumb {

/// All keys but those in which the families differ, which are attention_bias, feed_forward_bias, qk_norm, and the
/// default size of a head (0: d_model/heads).
ModelConfig llama_like_configuration(Settings& settings, double theta, int64_t head_size = 0);

/// The reverse, with the same exceptions.
Json llama_like_settings(const ModelConfig& config);

/// With the biases and norms that the configuration has; LayerNorm has a bias.
NamedTensors llama_like_tensors(const ModelConfig& config, Weights& weights);

/// Throws Error unless every layer attends to all earlier positions.
void require_full_attention(Settings& settings, const ModelConfig& config);

}  // namespace plumb
