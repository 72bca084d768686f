#include "plumb/interop/families/llama_layers.h"

#include <fmt/format.h>

namespace plumb {

ModelConfig llama_like_configuration(Settings& settings, double theta, int64_t head_size) {
  ModelConfig config = imported_decoder();
  config.norm = "rmsnorm";
  config.norm_eps = settings.number("rms_norm_eps", 1e-6);
  read_decoder_sizes(settings, config);
  config.kv_heads = settings.integer("num_key_value_heads", config.heads);
  config.head_size = settings.integer("head_dim", head_size);
  config.activation = gated_activation(settings, "hidden_act");
  config.share_embeddings = settings.flag("tie_word_embeddings", false) ? "target" : "none";
  config.dropout = 0;
  read_rotary(settings, config, theta);
  settings.ignore({"attention_dropout", "max_position_embeddings", "pretraining_tp"});
  return config;
}

Json llama_like_settings(const ModelConfig& config) {
  Json keys = decoder_sizes(config);
  keys.update({{"rms_norm_eps", config.norm_eps},
               {"num_key_value_heads", heads_of(config).kv_heads},
               {"head_dim", heads_of(config).size},
               {"hidden_act", gated_activation_name(config)},
               {"tie_word_embeddings", config.share_embeddings != "none"}});
  write_rotary(config, keys);
  return keys;
}

void require_full_attention(Settings& settings, const ModelConfig& config) {
  settings.require("use_sliding_window", false);
  settings.require("use_mrope", false);
  settings.ignore({"sliding_window", "max_window_layers"});
  if (settings.has("layer_types")) {
    const std::vector<std::string> types = settings.texts("layer_types");
    for (const std::string& type : types) {
      if (type != "full_attention") throw settings.unsupported("layer_types", "full_attention");
    }
    if (std::ssize(types) != config.decoder_layers)
      throw settings.unsupported("layer_types", fmt::format("one for each of {} layers", config.decoder_layers));
  }
}

NamedTensors llama_like_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model, wide = config.feed_forward, size = heads_of(config).size;
  const bool norm_bias = config.norm == "layernorm", gated_bias = config.feed_forward_bias;
  NamedTensors result;
  weights.set_prefix("model.");
  result.emplace_back("tgt_embed.weight", weights.take("embed_tokens.weight", {config.target_vocabulary, d}));
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string theirs = fmt::format("layers.{}.", i), ours = fmt::format("decoder.layers.{}.", i);
    const std::string attention = theirs + "self_attn.";
    take_pair(weights, theirs + "input_layernorm", ours + "norm1", {d}, norm_bias, result);
    take_stacked(weights, {attention + "q_proj", attention + "k_proj", attention + "v_proj"}, ours + "self_attn",
                 config, config.attention_bias != "none", result);
    take_pair(weights, attention + "o_proj", ours + "self_attn.out_proj", {d, config.heads * size},
              config.attention_bias == "all", result);
    if (config.qk_norm != "none") {
      take_pair(weights, attention + "q_norm", ours + "self_attn.q_norm", {size}, false, result);
      take_pair(weights, attention + "k_norm", ours + "self_attn.k_norm", {size}, false, result);
    }
    if (!config.parallel)
      take_pair(weights, theirs + "post_attention_layernorm", ours + "norm2", {d}, norm_bias, result);
    take_pair(weights, theirs + "mlp.gate_proj", ours + "linear1", {wide, d}, gated_bias, result);
    take_pair(weights, theirs + "mlp.up_proj", ours + "linear3", {wide, d}, gated_bias, result);
    take_pair(weights, theirs + "mlp.down_proj", ours + "linear2", {d, wide}, gated_bias, result);
  }
  take_pair(weights, "norm", "decoder.norm", {d}, norm_bias, result);
  weights.ignore("model.layers.*.self_attn.rotary_emb.inv_freq");  // the frequencies, which config.json implies
  take_output(weights, "lm_head", config, result);
  return result;
}

}  // namespace plumb
