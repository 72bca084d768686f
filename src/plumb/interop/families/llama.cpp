// Llama 2 and 3, Touvron et al. 2023, arXiv 2307.09288; Grattafiori et al. 2024, arXiv 2407.21783.
#include "plumb/interop/families/llama_layers.h"

namespace plumb {
namespace {

ModelConfig llama_configuration(Settings& settings) {
  ModelConfig config = llama_like_configuration(settings, 10'000);
  config.attention_bias = settings.flag("attention_bias", false) ? "all" : "none";
  config.feed_forward_bias = settings.flag("mlp_bias", false);
  return config;
}

Json llama_settings(const ModelConfig& config) {
  Json keys = llama_like_settings(config);
  keys["attention_bias"] = config.attention_bias == "all";
  keys["mlp_bias"] = config.feed_forward_bias;
  return keys;
}

const bool kLlamaRegistered =
    families().add("llama", "Llama 2 and 3", "Touvron et al. 2023, arXiv 2307.09288",
                   {{"LlamaForCausalLM"}, llama_configuration, llama_like_tensors, llama_settings});

}  // namespace
}  // namespace plumb
