// StableLM, Bellagente et al. 2024, arXiv 2402.17834: LayerNorm, rotary positions for some features of a head, a gated
// feed-forward sub-layer. With a parallel residual, attention and feed-forward read the layer's input through one norm.
#include <fmt/format.h>

#include "plumb/interop/family.h"

namespace plumb {
namespace {

ModelConfig stablelm_configuration(Settings& settings) {
  ModelConfig config = imported_decoder();
  config.norm_eps = settings.number("layer_norm_eps", 1e-5);
  config.target_vocabulary = settings.integer("vocab_size");
  config.d_model = settings.integer("hidden_size");
  config.feed_forward = settings.integer("intermediate_size");
  config.decoder_layers = settings.integer("num_hidden_layers");
  config.heads = settings.integer("num_attention_heads");
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
  Json keys = {{"layer_norm_eps", config.norm_eps},
               {"vocab_size", config.target_vocabulary},
               {"hidden_size", config.d_model},
               {"intermediate_size", config.feed_forward},
               {"num_hidden_layers", config.decoder_layers},
               {"num_attention_heads", config.heads},
               {"num_key_value_heads", key_value_heads_of(config)},
               {"hidden_act", gated_activation_name(config)},
               {"use_qkv_bias", config.attention_bias == "qkv"},
               {"use_parallel_residual", config.parallel},
               {"tie_word_embeddings", config.share_embeddings != "none"},
               {"hidden_dropout", config.dropout}};
  write_rotary(config, keys);
  keys["partial_rotary_factor"] = rotated_share(config);  // without it, a quarter
  return keys;
}

NamedTensors stablelm_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  NamedTensors result;
  weights.set_prefix("model.");
  result.emplace_back("tgt_embed.weight", weights.take("embed_tokens.weight", {config.target_vocabulary, d}));
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string theirs = fmt::format("layers.{}.", i), ours = fmt::format("decoder.layers.{}.", i);
    const std::string attention = theirs + "self_attn.";
    take_pair(weights, theirs + "input_layernorm", ours + "norm1", {d}, true, result);
    take_stacked(weights, {attention + "q_proj", attention + "k_proj", attention + "v_proj"}, ours + "self_attn",
                 config, config.attention_bias == "qkv", result);
    take_pair(weights, attention + "o_proj", ours + "self_attn.out_proj", {d, d}, false, result);
    if (!config.parallel) take_pair(weights, theirs + "post_attention_layernorm", ours + "norm2", {d}, true, result);
    take_pair(weights, theirs + "mlp.gate_proj", ours + "linear1", {wide, d}, false, result);
    take_pair(weights, theirs + "mlp.up_proj", ours + "linear3", {wide, d}, false, result);
    take_pair(weights, theirs + "mlp.down_proj", ours + "linear2", {d, wide}, false, result);
  }
  take_pair(weights, "norm", "decoder.norm", {d}, true, result);
  weights.ignore("model.layers.*.self_attn.rotary_emb.inv_freq");  // the frequencies, which config.json implies
  take_output(weights, "lm_head", config, result);
  return result;
}

const bool kStableLmRegistered =
    families().add("stablelm", "StableLM", "Bellagente et al. 2024, arXiv 2402.17834",
                   {{"StableLmForCausalLM"}, stablelm_configuration, stablelm_tensors, stablelm_settings});

}  // namespace
}  // namespace plumb
