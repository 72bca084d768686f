// BERT, Devlin et al. 2019, arXiv 1810.04805, and RoBERTa, Liu et al. 2019, arXiv 1907.11692: Post-LN, learned
// positions, segments, a norm on the embeddings. RoBERTa's positions start at the padding token's id + 1, and its
// classifier has a hidden layer in place of BERT's pooler.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/interop/families/encoder_head.h"

namespace plumb {
namespace {

/// Unused rows at the beginning of RoBERTa's table of positions: the padding token's id, 1, plus 1.
constexpr int64_t kRobertaPositions = 2;

ModelConfig bert_like_configuration(Settings& settings) {
  ModelConfig config = imported_encoder(settings);
  config.source_vocabulary = settings.integer("vocab_size");
  config.d_model = settings.integer("hidden_size");
  config.feed_forward = settings.integer("intermediate_size");
  config.encoder_layers = settings.integer("num_hidden_layers");
  config.heads = settings.integer("num_attention_heads");
  config.activation = plain_activation(settings, "hidden_act");
  config.norm_eps = settings.number("layer_norm_eps", 1e-12);
  config.segments = settings.integer("type_vocab_size", 2);
  config.max_positions = settings.integer("max_position_embeddings");
  config.dropout = settings.number("hidden_dropout_prob", 0.1);
  settings.require("position_embedding_type", "absolute");
  settings.require("is_decoder", false);
  settings.require("add_cross_attention", false);
  settings.ignore({"attention_probs_dropout_prob", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
                   "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"});
  return config;
}

/// BERT's head has the activation of its layers; Plumb's head has only GELU.
ModelConfig bert_configuration(Settings& settings) {
  ModelConfig config = bert_like_configuration(settings);
  if (config.output_transform && config.activation != "gelu")
    throw settings.unsupported("hidden_act", "gelu, gelu_python before an output layer over the vocabulary");
  return config;
}

/// The keys of the encoder and its head, which determines the class.
Json bert_settings(const ModelConfig& config) {
  Json settings = {{"vocab_size", source_vocabulary_of(config)},
                   {"hidden_size", config.d_model},
                   {"intermediate_size", config.feed_forward},
                   {"num_hidden_layers", config.encoder_layers},
                   {"num_attention_heads", config.heads},
                   {"hidden_act", plain_activation_name(config)},
                   {"layer_norm_eps", config.norm_eps},
                   {"type_vocab_size", std::max<int64_t>(config.segments, 1)},
                   {"max_position_embeddings", config.max_positions},
                   {"tie_word_embeddings", config.share_embeddings != "none"},
                   {"hidden_dropout_prob", config.dropout},
                   {"attention_probs_dropout_prob", config.dropout}};
  write_encoder_head(config, "Bert", settings);
  return settings;
}

ModelConfig roberta_configuration(Settings& settings) {
  ModelConfig config = bert_like_configuration(settings);
  settings.require("pad_token_id", kRobertaPositions - 1);
  config.max_positions -= kRobertaPositions;
  return config;
}

/// Takes embeddings and layers, whose names have the prefix unless the encoder was saved by itself. `skipped`: unused
/// rows at the beginning of the table of positions.
NamedTensors take_encoder(const ModelConfig& config, Weights& weights, std::string prefix, int64_t skipped) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  if (weights.has("embeddings.word_embeddings.weight")) prefix.clear();
  weights.rename_ending("LayerNorm.gamma", "LayerNorm.weight");  // in files converted from TensorFlow
  weights.rename_ending("LayerNorm.beta", "LayerNorm.bias");
  weights.set_prefix(prefix);
  NamedTensors result;
  const std::string embeddings = "embeddings.";
  result.emplace_back("src_embed.weight",
                      weights.take(embeddings + "word_embeddings.weight", {config.source_vocabulary, d}));
  const Tensor places = weights.take(embeddings + "position_embeddings.weight", {config.max_positions + skipped, d});
  result.emplace_back("src_position.weight", places.narrow(0, skipped, config.max_positions));
  result.emplace_back("src_segment.weight",
                      weights.take(embeddings + "token_type_embeddings.weight", {config.segments, d}));
  take_pair(weights, embeddings + "LayerNorm", "src_embed_norm", {d}, true, result);
  for (int64_t i = 0; i < config.encoder_layers; ++i) {
    const std::string theirs = fmt::format("encoder.layer.{}.", i), ours = fmt::format("encoder.layers.{}.", i);
    const std::string self = theirs + "attention.self.";
    take_stacked(weights, {self + "query", self + "key", self + "value"}, ours + "self_attn", config, true, result);
    take_pair(weights, theirs + "attention.output.dense", ours + "self_attn.out_proj", {d, d}, true, result);
    take_pair(weights, theirs + "attention.output.LayerNorm", ours + "norm1", {d}, true, result);
    take_pair(weights, theirs + "intermediate.dense", ours + "linear1", {wide, d}, true, result);
    take_pair(weights, theirs + "output.dense", ours + "linear2", {d, wide}, true, result);
    take_pair(weights, theirs + "output.LayerNorm", ours + "norm2", {d}, true, result);
  }
  weights.ignore(prefix + "embeddings.position_ids");  // 0, 1, 2, …
  return result;
}

NamedTensors bert_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model;
  NamedTensors result = take_encoder(config, weights, "bert.", 0);
  if (config.pooler) {
    take_pair(weights, "pooler.dense", "pooler", {d, d}, true, result);
    weights.set_prefix("");
    take_pair(weights, "classifier", "output", {config.labels, d}, true, result);
    return result;
  }
  weights.leave_out("*pooler.dense.*", "pooler");
  if (!config.output_transform) return result;
  const std::string head = "cls.predictions.";
  weights.leave_out("cls.seq_relationship.*", "next-sentence prediction");
  take_token_head(weights,
                  {head + "transform.dense", head + "transform.LayerNorm", head + "decoder", "cls.predictions"}, config,
                  result);
  return result;
}

NamedTensors roberta_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model;
  NamedTensors result = take_encoder(config, weights, "roberta.", kRobertaPositions);
  if (config.pooler) {
    weights.set_prefix("");
    take_pair(weights, "classifier.dense", "pooler", {d, d}, true, result);
    take_pair(weights, "classifier.out_proj", "output", {config.labels, d}, true, result);
    return result;
  }
  weights.leave_out("*pooler.dense.*", "pooler");
  if (config.output_transform)
    take_token_head(weights, {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head"}, config, result);
  return result;
}

const bool kBertRegistered = families().add(
    "bert", "BERT: the encoder, as a masked language model, or as a classifier", "Devlin et al. 2019, arXiv 1810.04805",
    {{"BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification"},
     bert_configuration,
     bert_tensors,
     bert_settings});
const bool kRobertaRegistered =
    families().add("roberta", "RoBERTa: the encoder, as a masked language model, or as a classifier",
                   "Liu et al. 2019, arXiv 1907.11692",
                   {{"RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification"},
                    roberta_configuration,
                    roberta_tensors});
const bool kXlmRobertaRegistered =
    families().add("xlm-roberta", "XLM-RoBERTa, RoBERTa for 100 languages", "Conneau et al. 2020, arXiv 1911.02116",
                   {{"XLMRobertaModel", "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification"},
                    roberta_configuration,
                    roberta_tensors});

}  // namespace
}  // namespace plumb
