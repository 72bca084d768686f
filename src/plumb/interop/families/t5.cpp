// T5, Raffel et al. 2019, arXiv 1910.10683, and T5 1.1: RMSNorm before each sub-layer, an attention bias per bucket of
// distances, no other biases. Its scores are not divided by √size, and if the output matrix is the embedding, its
// logits are divided by √d; so the query matrices are multiplied by √size here, and the last norm's gain is divided by
// √d. T5 1.1 has a gated unit and a separate output matrix.
#include <fmt/format.h>

#include <cmath>

#include "plumb/interop/family.h"

namespace plumb {
namespace {

std::string t5_activation(Settings& settings) {
  const char* key = "feed_forward_proj";
  const std::string name = settings.text(key, "relu");
  const bool gated = name != "relu";
  if (gated && name != "gated-gelu" && name != "gated-silu")
    throw settings.unsupported(key, "relu, gated-gelu, gated-silu");
  // `transformers` writes what follows from the name, and takes these if they are given.
  settings.require("is_gated_act", gated);
  settings.require("dense_act_fn", name == "gated-gelu" ? "gelu_new" : name == "gated-silu" ? "silu" : "relu");
  return !gated ? "relu" : name == "gated-gelu" ? "geglu-tanh" : "swiglu";
}

ModelConfig t5_configuration(Settings& settings) {
  ModelConfig config;
  config.kind = "encoder-decoder";
  config.embedding_factor = 1;
  config.norm = "rmsnorm";
  config.norm_eps = settings.number("layer_norm_epsilon", 1e-6);
  config.positions = "t5";
  config.attention_bias = "none";
  config.feed_forward_bias = false;
  config.source_vocabulary = config.target_vocabulary = settings.integer("vocab_size", 32128);
  config.d_model = settings.integer("d_model", 512);
  config.head_size = settings.integer("d_kv", 64);
  config.feed_forward = settings.integer("d_ff", 2048);
  config.encoder_layers = settings.integer("num_layers", 6);
  config.decoder_layers = settings.integer("num_decoder_layers", config.encoder_layers);
  config.heads = settings.integer("num_heads", 8);
  config.activation = t5_activation(settings);
  // T5 1.1 has tie_word_embeddings = false; version 5 of `transformers` uses another key, and may omit the output
  // matrix.
  const bool scaled = settings.flag("scale_decoder_outputs", settings.flag("tie_word_embeddings", true));
  config.share_embeddings = scaled ? "all" : "none";
  config.dropout = settings.number("dropout_rate", 0.1);
  settings.require("relative_attention_num_buckets", 32);
  settings.require("relative_attention_max_distance", 128);
  settings.require("is_encoder_decoder", true);
  settings.ignore({"n_positions", "initializer_factor", "decoder_start_token_id", "is_decoder"});
  return config;
}

Json t5_settings(const ModelConfig& config) {
  const bool shared = config.share_embeddings == "all";
  const std::string unit = config.activation;
  return {{"vocab_size", config.source_vocabulary},
          {"d_model", config.d_model},
          {"d_kv", heads_of(config).size},
          {"d_ff", config.feed_forward},
          {"num_layers", config.encoder_layers},
          {"num_decoder_layers", config.decoder_layers},
          {"num_heads", config.heads},
          {"layer_norm_epsilon", config.norm_eps},
          {"feed_forward_proj", unit == "geglu-tanh" ? "gated-gelu"
                                : unit == "swiglu"   ? "gated-silu"
                                                     : "relu"},
          {"tie_word_embeddings", shared},
          {"scale_decoder_outputs", shared},
          {"dropout_rate", config.dropout},
          {"is_encoder_decoder", true}};
}

/// tensor·factor, in at least 32 bits unless the factor is a power of two, and the product thus exact.
Tensor scaled(const Tensor& tensor, double factor) {
  int exponent = 0;
  const bool exact = std::frexp(factor, &exponent) == 0.5;
  return tensor.to(exact ? tensor.scalar_type() : at::promote_types(tensor.scalar_type(), at::kFloat)) * factor;
}

/// Takes an attention sub-layer, with the query matrix multiplied by √size.
void take_attention(Weights& weights, const std::string& theirs, const std::string& ours, const ModelConfig& config,
                    NamedTensors& result) {
  const ops::HeadShape heads = heads_of(config);
  const int64_t queries = heads.width();
  take_stacked(weights, {theirs + "q", theirs + "k", theirs + "v"}, ours, config, false, result);
  Tensor& stacked = result.back().second;
  const Tensor larger = scaled(stacked.narrow(0, 0, queries), std::sqrt(static_cast<double>(heads.size)));
  stacked = at::cat({larger, stacked.narrow(0, queries, 2 * queries).to(larger.scalar_type())});
  take_pair(weights, theirs + "o", ours + ".out_proj", {config.d_model, queries}, false, result);
}

void take_feed_forward(Weights& weights, const std::string& theirs, const std::string& ours, const ModelConfig& config,
                       NamedTensors& result) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  const bool gated = config.activation != "relu";
  take_pair(weights, theirs + (gated ? "wi_0" : "wi"), ours + "linear1", {wide, d}, false, result);
  if (gated) take_pair(weights, theirs + "wi_1", ours + "linear3", {wide, d}, false, result);
  take_pair(weights, theirs + "wo", ours + "linear2", {d, wide}, false, result);
}

/// Takes the layers of one side, "encoder" or "decoder".
void take_side(Weights& weights, const std::string& side, const ModelConfig& config, NamedTensors& result) {
  const int64_t d = config.d_model;
  const bool decoder = side == "decoder";
  for (int64_t i = 0; i < (decoder ? config.decoder_layers : config.encoder_layers); ++i) {
    const std::string block = fmt::format("{}.block.{}.layer.", side, i), ours = fmt::format("{}.layers.{}.", side, i);
    take_attention(weights, block + "0.SelfAttention.", ours + "self_attn", config, result);
    take_pair(weights, block + "0.layer_norm", ours + "norm1", {d}, false, result);
    if (decoder) {
      take_attention(weights, block + "1.EncDecAttention.", ours + "multihead_attn", config, result);
      take_pair(weights, block + "1.layer_norm", ours + "norm2", {d}, false, result);
    }
    const int last = decoder ? 2 : 1;
    take_feed_forward(weights, fmt::format("{}{}.DenseReluDense.", block, last), ours, config, result);
    take_pair(weights, fmt::format("{}{}.layer_norm", block, last), fmt::format("{}norm{}", ours, last + 1), {d}, false,
              result);
  }
  result.emplace_back(
      decoder ? "tgt_position.relative_bias" : "src_position.relative_bias",
      weights.take(side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight", {32, config.heads}));
  take_pair(weights, side + ".final_layer_norm", side + ".norm", {d}, false, result);
}

NamedTensors t5_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model;
  NamedTensors result;
  const Tensor table = weights.take("shared.weight", {config.source_vocabulary, d});
  result.emplace_back("src_embed.weight", table);
  take_side(weights, "encoder", config, result);
  take_side(weights, "decoder", config, result);
  weights.ignore_copies("*coder.embed_tokens.weight", table);
  // Published files have a bias in the cross-attention, which the model does not use.
  weights.ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
  if (config.share_embeddings == "all") {
    Tensor& gain = result.back().second;
    gain = scaled(gain, 1 / std::sqrt(static_cast<double>(d)));
    weights.ignore_copies("lm_head.weight", table);
  } else {
    result.emplace_back("tgt_embed.weight", table);
    const std::vector<int64_t> shape = {config.target_vocabulary, d};
    result.emplace_back("output.weight",
                        weights.has_optional("lm_head.weight") ? weights.take("lm_head.weight", shape) : table);
  }
  return result;
}

const bool kT5FamilyRegistered =
    families().add("t5", "T5 and T5 1.1", "Raffel et al. 2019, arXiv 1910.10683",
                   {{"T5ForConditionalGeneration"}, t5_configuration, t5_tensors, t5_settings});

}  // namespace
}  // namespace plumb
