// StableLM, Bellagente et al. 2024, arXiv 2402.17834: LayerNorm, rotary positions for some features of a head, a gated
// feed-forward sub-layer. With a parallel residual, attention and feed-forward read the layer's input through one norm.
// The tensors are named like Llama's.
#include "plumb/interop/families/llama_layers.h"

namespace plumb {
namespace {

ModelConfig stablelm_configuration(Settings& settings) {
  ModelConfig config = imported_decoder();
  config.norm_eps = settings.number("layer_norm_eps", 1e-5);
  read_decoder_sizes(settings, config);
  config.kv_heads = settings.integer("num_key_value_heads", config.heads);
  config.activation = gated_activation(settings, "hidden_act");
  config.attention_bias = settings.flag("use_qkv_bias", false) ? "qkv" : "none";
  config.feed_forward_bias = false;
  config.parallel = settings.flag("use_parallel_residual", false);
  config.share_embeddings = settings.flag("tie_word_embeddings", false) ? "target" : "none";
  config.dropout = settings.number("hidden_dropout", 0);
  read_rotary(settings, config, 10'000, 0.25);
  settings.require("qk_layernorm", false);
  settings.ignore({"attention_dropout", "max_position_embeddings"});
  return config;
}

Json stablelm_settings(const ModelConfig& config) {
  Json keys = decoder_sizes(config);
  keys.update({{"layer_norm_eps", config.norm_eps},
               {"num_key_value_heads", heads_of(config).kv_heads},
               {"hidden_act", gated_activation_name(config)},
               {"use_qkv_bias", config.attention_bias == "qkv"},
               {"use_parallel_residual", config.parallel},
               {"tie_word_embeddings", config.share_embeddings != "none"},
               {"hidden_dropout", config.dropout}});
  write_rotary(config, keys);
  keys["partial_rotary_factor"] = rotated_share(config);  // the default is a quarter
  return keys;
}

const bool kStableLmRegistered =
    families().add("stablelm", "StableLM", "Bellagente et al. 2024, arXiv 2402.17834",
                   {{"StableLmForCausalLM"}, stablelm_configuration, llama_like_tensors, stablelm_settings});

}  // namespace
}  // namespace plumb
