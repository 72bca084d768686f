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

const bool kLlamaRegistered = families().add("llama", "Llama 2 and 3", "Touvron et al. 2023, arXiv 2307.09288",
                                             {{"LlamaForCausalLM"}, llama_configuration, llama_like_tensors});

}  // namespace
}  // namespace plumb
