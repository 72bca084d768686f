// Qwen 2 and 2.5, Yang et al. 2024, arXiv 2407.10671: Llama's layers with biases for query, key and value; and Qwen 3,
// Yang et al. 2025, arXiv 2505.09388: without them by default, but with a norm on each head's queries and keys.
#include "plumb/interop/families/llama_layers.h"

namespace plumb {
namespace {

ModelConfig qwen2_configuration(Settings& settings) {
  ModelConfig config = llama_like_configuration(settings, 10'000);
  config.attention_bias = "qkv";
  config.feed_forward_bias = false;
  require_full_attention(settings, config);
  return config;
}

ModelConfig qwen3_configuration(Settings& settings) {
  ModelConfig config = llama_like_configuration(settings, 10'000, 128);
  config.attention_bias = settings.flag("attention_bias", false) ? "all" : "none";
  config.feed_forward_bias = false;
  config.qk_norm = "rmsnorm";
  require_full_attention(settings, config);
  return config;
}

Json qwen3_settings(const ModelConfig& config) {
  Json keys = llama_like_settings(config);
  keys["attention_bias"] = config.attention_bias == "all";
  return keys;
}

const bool kQwen2Registered =
    families().add("qwen2", "Qwen 2 and 2.5", "Yang et al. 2024, arXiv 2407.10671",
                   {{"Qwen2ForCausalLM"}, qwen2_configuration, llama_like_tensors, llama_like_settings});
const bool kQwen3Registered =
    families().add("qwen3", "Qwen 3", "Yang et al. 2025, arXiv 2505.09388",
                   {{"Qwen3ForCausalLM"}, qwen3_configuration, llama_like_tensors, qwen3_settings});

}  // namespace
}  // namespace plumb
