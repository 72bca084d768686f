// GPT-NeoX, Black et al. 2022, arXiv 2204.06745, and Pythia, Biderman et al. 2023, arXiv 2304.01373: attention and
// feed-forward each read the layer's input through their own norm; some features of a head are rotated; the matrices of
// query, key and value are interleaved by head.
#include <fmt/format.h>

#include "plumb/interop/family.h"

namespace plumb {
namespace {

ModelConfig gpt_neox_configuration(Settings& settings) {
  ModelConfig config = imported_decoder();
  config.residual = settings.flag("use_parallel_residual", true) ? "parallel-ln" : "pre-ln";
  config.norm_eps = settings.number("layer_norm_eps", 1e-5);
  read_decoder_sizes(settings, config);
  config.activation = plain_activation(settings, "hidden_act");
  config.attention_bias = settings.flag("attention_bias", true) ? "all" : "none";
  config.share_embeddings = settings.flag("tie_word_embeddings", false) ? "target" : "none";
  config.dropout = settings.number("hidden_dropout", 0);
  // At the top level, `transformers` has these names; it ignores those of other families there.
  const double theta = settings.number("rotary_emb_base", 10'000), share = settings.number("rotary_pct", 0.25);
  settings.require("rope_theta", theta);
  settings.require("partial_rotary_factor", share);
  read_rotary(settings, config, theta, share);
  settings.require("is_decoder", false);
  settings.ignore(
      {"attention_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob", "max_position_embeddings"});
  return config;
}

Json gpt_neox_settings(const ModelConfig& config) {
  Json keys = decoder_sizes(config);
  keys.update({{"use_parallel_residual", config.residual == "parallel-ln"},
               {"layer_norm_eps", config.norm_eps},
               {"hidden_act", plain_activation_name(config)},
               {"attention_bias", config.attention_bias != "none"},
               {"tie_word_embeddings", config.share_embeddings != "none"},
               {"hidden_dropout", config.dropout},
               {"attention_dropout", config.dropout},
               {"rotary_emb_base", rotary_options_of(config).theta},
               {"rotary_pct", rotated_share(config)}});
  return keys;
}

/// Reorders rows [head][query, key, value][feature] to our [query, key, value][head][feature]; x: (3·d) or (3·d, d).
Tensor separated(const Tensor& x, int64_t heads) {
  const int64_t rows = x.size(0), columns = x.numel() / rows;
  return x.reshape({heads, 3, rows / (3 * heads), columns}).transpose(0, 1).reshape(x.sizes());
}

NamedTensors gpt_neox_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  const bool bias = config.attention_bias == "all";
  NamedTensors result;
  weights.set_prefix("gpt_neox.");
  result.emplace_back("tgt_embed.weight", weights.take("embed_in.weight", {config.target_vocabulary, d}));
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string theirs = fmt::format("layers.{}.", i), ours = fmt::format("decoder.layers.{}.", i);
    const std::string fused = theirs + "attention.query_key_value", attention = ours + "self_attn.";
    take_pair(weights, theirs + "input_layernorm", ours + "norm1", {d}, true, result);
    result.emplace_back(attention + "in_proj_weight",
                        separated(weights.take(fused + ".weight", {3 * d, d}), config.heads));
    if (bias)
      result.emplace_back(attention + "in_proj_bias", separated(weights.take(fused + ".bias", {3 * d}), config.heads));
    take_pair(weights, theirs + "attention.dense", attention + "out_proj", {d, d}, bias, result);
    take_pair(weights, theirs + "post_attention_layernorm", ours + "norm2", {d}, true, result);
    take_pair(weights, theirs + "mlp.dense_h_to_4h", ours + "linear1", {wide, d}, true, result);
    take_pair(weights, theirs + "mlp.dense_4h_to_h", ours + "linear2", {d, wide}, true, result);
  }
  take_pair(weights, "final_layer_norm", "decoder.norm", {d}, true, result);
  for (const char* computed : {"bias", "masked_bias", "rotary_emb.inv_freq"})  // the causal mask, the frequencies
    weights.ignore(fmt::format("gpt_neox.layers.*.attention.{}", computed));
  take_output(weights, "embed_out", config, result);
  return result;
}

const bool kGptNeoxRegistered =
    families().add("gpt_neox", "GPT-NeoX and Pythia", "Black et al. 2022, arXiv 2204.06745",
                   {{"GPTNeoXForCausalLM"}, gpt_neox_configuration, gpt_neox_tensors, gpt_neox_settings});

}  // namespace
}  // namespace plumb
