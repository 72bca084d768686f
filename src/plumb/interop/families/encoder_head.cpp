#include "plumb/interop/families/encoder_head.h"

#include <fmt/format.h>

namespace plumb {

EncoderHead encoder_head_of(Settings& settings) {
  const std::string name = settings.texts("architectures").at(0);
  if (name.ends_with("ForSequenceClassification")) return EncoderHead::labels;
  return name.ends_with("Model") ? EncoderHead::none : EncoderHead::tokens;
}

ModelConfig imported_encoder(Settings& settings) {
  ModelConfig config;
  config.kind = "encoder";
  config.residual = "post-ln";
  config.embedding_factor = 1;
  config.embedding_norm = true;
  config.positions = "learned";
  const EncoderHead head = encoder_head_of(settings);
  const bool tied = settings.flag("tie_word_embeddings", true);
  if (head == EncoderHead::labels) {
    settings.require("problem_type", "single_label_classification");  // others have no softmax over the labels
    config.pooling = "first";
    config.pooler = true;
    config.labels = std::ssize(labels_of(settings));
    return config;
  }
  config.pooling = "none";
  config.output_transform = config.output_bias = head == EncoderHead::tokens;
  if (head == EncoderHead::tokens && !tied) config.share_embeddings = "none";
  return config;
}

void write_encoder_head(const ModelConfig& config, const std::string& family, Json& settings) {
  const char* head = config.labels > 0         ? "ForSequenceClassification"
                     : config.output_transform ? "ForMaskedLM"
                                               : "Model";
  settings["architectures"] = Json::array({family + head});
  if (config.labels == 0) return;
  std::vector<std::string> labels;
  for (int64_t i = 0; i < config.labels; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  name_labels(labels, settings);
}

void take_token_head(Weights& weights, const TokenHeadNames& names, const ModelConfig& config, NamedTensors& result) {
  const int64_t d = config.d_model, vocabulary = config.source_vocabulary;
  weights.set_prefix("");
  take_pair(weights, names.dense, "transform", {d, d}, true, result);
  take_pair(weights, names.norm, "transform_norm", {d}, true, result);
  if (config.share_embeddings == "none")
    result.emplace_back("output.weight", weights.take(names.output + ".weight", {vocabulary, d}));
  const std::string bias = weights.has(names.output + ".bias") || names.bias.empty() ? names.output : names.bias;
  result.emplace_back("output.bias", weights.take(bias + ".bias", {vocabulary}));
  // If the matrix is not tied to the embedding, `transformers` stores its bias under both names.
  if (!names.bias.empty() && config.share_embeddings == "none")
    weights.also_named((bias == names.bias ? names.output : names.bias) + ".bias");
  if (config.share_embeddings != "none")
    weights.ignore_copies(names.output + ".weight", tensor_named("src_embed.weight", result));
  weights.ignore(names.output + ".bias");  // a copy, or already taken
  if (!names.bias.empty()) weights.ignore(names.bias + ".bias");
}

}  // namespace plumb
