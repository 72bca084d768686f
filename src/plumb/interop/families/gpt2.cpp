// GPT-2, Radford et al. 2019: Pre-LN, learned positions, GELU's tanh approximation, tied output. Its Conv1D stores
// matrices as (in, out).
#include <fmt/format.h>

#include "plumb/interop/family.h"

namespace plumb {
namespace {

ModelConfig gpt2_configuration(Settings& settings) {
  ModelConfig config = imported_decoder();
  config.positions = "learned";
  config.target_vocabulary = settings.integer("vocab_size", 50257);
  config.max_positions = settings.integer("n_positions", 1024);
  config.d_model = settings.integer("n_embd", 768);
  config.decoder_layers = settings.integer("n_layer", 12);
  config.heads = settings.integer("n_head", 12);
  config.feed_forward = settings.has("n_inner") ? settings.integer("n_inner") : 4 * config.d_model;
  config.activation = plain_activation(settings, "activation_function");
  config.norm_eps = settings.number("layer_norm_epsilon", 1e-5);
  config.share_embeddings = settings.flag("tie_word_embeddings", true) ? "target" : "none";
  config.dropout = settings.number("resid_pdrop", 0.1);
  settings.require("scale_attn_weights", true);
  settings.require("scale_attn_by_inverse_layer_idx", false);
  settings.require("add_cross_attention", false);
  settings.ignore({"n_inner", "n_ctx", "attn_pdrop", "embd_pdrop", "reorder_and_upcast_attn", "summary_activation",
                   "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "n_special",
                   "predict_special_tokens"});
  return config;
}

Json gpt2_settings(const ModelConfig& config) {
  return {{"vocab_size", config.target_vocabulary},
          {"n_positions", config.max_positions},
          {"n_embd", config.d_model},
          {"n_layer", config.decoder_layers},
          {"n_head", config.heads},
          {"n_inner", config.feed_forward},
          {"activation_function", plain_activation_name(config)},
          {"layer_norm_epsilon", config.norm_eps},
          {"tie_word_embeddings", config.share_embeddings != "none"},
          {"resid_pdrop", config.dropout},
          {"embd_pdrop", config.dropout},
          {"attn_pdrop", config.dropout}};
}

/// Takes a matrix (in, out), transposed to our (out, in), and its bias (out).
void take_conv1d(Weights& weights, const std::string& theirs, const std::string& weight, const std::string& bias,
                 int64_t in, int64_t out, NamedTensors& result) {
  result.emplace_back(weight, weights.take(theirs + ".weight", {in, out}).t());
  result.emplace_back(bias, weights.take(theirs + ".bias", {out}));
}

NamedTensors gpt2_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  weights.set_prefix(weights.has("wte.weight") ? "" : "transformer.");  // the published files have no prefix
  NamedTensors result;
  result.emplace_back("tgt_embed.weight", weights.take("wte.weight", {config.target_vocabulary, d}));
  result.emplace_back("tgt_position.weight", weights.take("wpe.weight", {config.max_positions, d}));
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string theirs = fmt::format("h.{}.", i), ours = fmt::format("decoder.layers.{}.", i);
    const std::string attention = ours + "self_attn.";
    take_pair(weights, theirs + "ln_1", ours + "norm1", {d}, true, result);
    take_conv1d(weights, theirs + "attn.c_attn", attention + "in_proj_weight", attention + "in_proj_bias", d, 3 * d,
                result);
    take_conv1d(weights, theirs + "attn.c_proj", attention + "out_proj.weight", attention + "out_proj.bias", d, d,
                result);
    take_pair(weights, theirs + "ln_2", ours + "norm2", {d}, true, result);
    take_conv1d(weights, theirs + "mlp.c_fc", ours + "linear1.weight", ours + "linear1.bias", d, wide, result);
    take_conv1d(weights, theirs + "mlp.c_proj", ours + "linear2.weight", ours + "linear2.bias", wide, d, result);
  }
  take_pair(weights, "ln_f", "decoder.norm", {d}, true, result);
  weights.ignore("*h.*.attn.bias");  // the causal mask
  weights.ignore("*h.*.attn.masked_bias");
  take_output(weights, "lm_head", config, result);
  return result;
}

const bool kGpt2Registered = families().add("gpt2", "GPT-2", "Radford et al. 2019",
                                            {{"GPT2LMHeadModel"}, gpt2_configuration, gpt2_tensors, gpt2_settings});

}  // namespace
}  // namespace plumb
