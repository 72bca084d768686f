// Marian, Junczys-Dowmunt et al. 2018, arXiv 1804.00344, as in OPUS-MT's translation models (Tiedemann & Thottingal
// 2020): the original Transformer, Post-LN, with sines and cosines in separate halves, SiLU, embeddings multiplied by
// √d and tied to the output, and a bias on the logits.
#include <fmt/format.h>

#include "plumb/interop/family.h"

namespace plumb {
namespace {

std::string marian_activation(Settings& settings) {
  const char* key = "activation_function";
  const std::string name = settings.text(key, "gelu");
  return name == "swish" || name == "silu" ? "silu" : plain_activation(settings, key);
}

ModelConfig marian_configuration(Settings& settings) {
  ModelConfig config;
  config.kind = "encoder-decoder";
  config.residual = "post-ln";
  config.positions = "sinusoidal-halves";
  config.output_bias = true;
  config.d_model = settings.integer("d_model", 1024);
  config.encoder_layers = settings.integer("encoder_layers", 12);
  config.decoder_layers = settings.integer("decoder_layers", 12);
  config.heads = settings.integer("encoder_attention_heads", 16);
  config.feed_forward = settings.integer("encoder_ffn_dim", 4096);
  config.activation = marian_activation(settings);
  config.embedding_factor = settings.flag("scale_embedding", false) ? 0 : 1;
  config.source_vocabulary = settings.integer("vocab_size");
  const bool shared = settings.flag("share_encoder_decoder_embeddings", true);
  config.target_vocabulary = settings.integer("decoder_vocab_size", config.source_vocabulary);
  config.share_embeddings = shared ? "all" : "target";
  config.dropout = settings.number("dropout", 0.1);
  settings.require("num_hidden_layers", config.encoder_layers);  // another name; `transformers` takes this one if given
  settings.require("decoder_attention_heads", config.heads);
  settings.require("decoder_ffn_dim", config.feed_forward);
  settings.require("tie_word_embeddings", true);
  settings.require("normalize_before", false);
  settings.require("normalize_embedding", false);
  settings.require("static_position_embeddings", true);
  settings.require("add_bias_logits", false);
  settings.require("add_final_layer_norm", false);
  settings.require("extra_pos_embeddings", 0);
  settings.require("is_encoder_decoder", true);
  settings.ignore({"max_position_embeddings", "encoder_layerdrop", "decoder_layerdrop", "attention_dropout",
                   "activation_dropout", "init_std", "decoder_start_token_id", "forced_eos_token_id", "bad_words_ids",
                   "num_beams", "classif_dropout", "is_decoder", "length_penalty", "early_stopping"});
  return config;
}

Json marian_settings(const ModelConfig& config) {
  return {{"vocab_size", config.source_vocabulary},
          {"decoder_vocab_size", config.target_vocabulary},
          {"share_encoder_decoder_embeddings", config.share_embeddings == "all"},
          {"tie_word_embeddings", true},
          {"d_model", config.d_model},
          {"encoder_layers", config.encoder_layers},
          {"decoder_layers", config.decoder_layers},
          {"encoder_attention_heads", config.heads},
          {"decoder_attention_heads", config.heads},
          {"encoder_ffn_dim", config.feed_forward},
          {"decoder_ffn_dim", config.feed_forward},
          {"activation_function", config.activation == "silu" ? "swish" : plain_activation_name(config)},
          {"scale_embedding", config.embedding_factor != 1},
          {"dropout", config.dropout},
          {"is_encoder_decoder", true}};
}

/// Takes the layers of one side, "encoder" or "decoder".
void take_side_of_marian(Weights& weights, const std::string& side, const ModelConfig& config, NamedTensors& result) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  const bool decoder = side == "decoder";
  const auto take_attention = [&](const std::string& theirs, const std::string& ours) {
    take_stacked(weights, {theirs + ".q_proj", theirs + ".k_proj", theirs + ".v_proj"}, ours, config, true, result);
    take_pair(weights, theirs + ".out_proj", ours + ".out_proj", {d, d}, true, result);
  };
  for (int64_t i = 0; i < (decoder ? config.decoder_layers : config.encoder_layers); ++i) {
    const std::string name = fmt::format("{}.layers.{}.", side, i);
    take_attention(name + "self_attn", name + "self_attn");
    take_pair(weights, name + "self_attn_layer_norm", name + "norm1", {d}, true, result);
    if (decoder) {
      take_attention(name + "encoder_attn", name + "multihead_attn");
      take_pair(weights, name + "encoder_attn_layer_norm", name + "norm2", {d}, true, result);
    }
    take_pair(weights, name + "fc1", name + "linear1", {wide, d}, true, result);
    take_pair(weights, name + "fc2", name + "linear2", {d, wide}, true, result);
    take_pair(weights, name + "final_layer_norm", name + (decoder ? "norm3" : "norm2"), {d}, true, result);
  }
}

NamedTensors marian_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model;
  NamedTensors result;
  weights.set_prefix("model.");
  if (config.share_embeddings == "all") {
    result.emplace_back("src_embed.weight", weights.take("shared.weight", {config.source_vocabulary, d}));
    weights.ignore_copies("model.*coder.embed_tokens.weight", result.back().second);
  } else {
    result.emplace_back("src_embed.weight", weights.take("encoder.embed_tokens.weight", {config.source_vocabulary, d}));
    result.emplace_back("tgt_embed.weight", weights.take("decoder.embed_tokens.weight", {config.target_vocabulary, d}));
  }
  weights.ignore("model.*coder.embed_positions.weight");  // the sines and cosines
  take_side_of_marian(weights, "encoder", config, result);
  take_side_of_marian(weights, "decoder", config, result);
  weights.set_prefix("");
  const char* of_target = config.share_embeddings == "all" ? "src_embed.weight" : "tgt_embed.weight";
  result.emplace_back(
      "output.bias", weights.take("final_logits_bias", {1, config.target_vocabulary}).view({config.target_vocabulary}));
  weights.ignore_copies("lm_head.weight", tensor_named(of_target, result));
  return result;
}

const bool kMarianRegistered = families().add(
    "marian", "Marian, as OPUS-MT's models for translation", "Junczys-Dowmunt et al. 2018, arXiv 1804.00344",
    {{"MarianMTModel"}, marian_configuration, marian_tensors, marian_settings});

}  // namespace
}  // namespace plumb
