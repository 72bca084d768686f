// DistilBERT, Sanh et al. 2019, arXiv 1910.01108: the layers of BERT without segments and pooler, under other names.
#include <fmt/format.h>

#include "plumb/interop/families/encoder_head.h"

namespace plumb {
namespace {

ModelConfig distilbert_configuration(Settings& settings) {
  ModelConfig config = imported_encoder(settings);
  config.source_vocabulary = settings.integer("vocab_size");
  config.d_model = settings.integer("dim");
  config.feed_forward = settings.integer("hidden_dim");
  config.encoder_layers = settings.integer("n_layers");
  config.heads = settings.integer("n_heads");
  config.activation = plain_activation(settings, "activation");
  config.norm_eps = 1e-12;
  config.max_positions = settings.integer("max_position_embeddings", 512);
  config.dropout = settings.number("dropout", 0.1);
  if (config.output_transform && config.activation != "gelu")
    throw settings.unsupported("activation", "gelu, gelu_python before an output layer over the vocabulary");
  // Sinusoidal positions are stored in the same table.
  settings.ignore({"attention_dropout", "qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_"});
  return config;
}

NamedTensors distilbert_tensors(const ModelConfig& config, Weights& weights) {
  const int64_t d = config.d_model, wide = config.feed_forward;
  weights.set_prefix(weights.has("embeddings.word_embeddings.weight") ? "" : "distilbert.");
  NamedTensors result;
  const std::string embeddings = "embeddings.";
  result.emplace_back("src_embed.weight",
                      weights.take(embeddings + "word_embeddings.weight", {config.source_vocabulary, d}));
  result.emplace_back("src_position.weight",
                      weights.take(embeddings + "position_embeddings.weight", {config.max_positions, d}));
  take_pair(weights, embeddings + "LayerNorm", "src_embed_norm", {d}, true, result);
  for (int64_t i = 0; i < config.encoder_layers; ++i) {
    const std::string theirs = fmt::format("transformer.layer.{}.", i), ours = fmt::format("encoder.layers.{}.", i);
    const std::string self = theirs + "attention.";
    take_stacked(weights, {self + "q_lin", self + "k_lin", self + "v_lin"}, ours + "self_attn", config, true, result);
    take_pair(weights, self + "out_lin", ours + "self_attn.out_proj", {d, d}, true, result);
    take_pair(weights, theirs + "sa_layer_norm", ours + "norm1", {d}, true, result);
    take_pair(weights, theirs + "ffn.lin1", ours + "linear1", {wide, d}, true, result);
    take_pair(weights, theirs + "ffn.lin2", ours + "linear2", {d, wide}, true, result);
    take_pair(weights, theirs + "output_layer_norm", ours + "norm2", {d}, true, result);
  }
  if (config.output_transform)
    take_token_head(weights, {"vocab_transform", "vocab_layer_norm", "vocab_projector", ""}, config, result);
  return result;
}

const bool kDistilbertRegistered = families().add(
    "distilbert", "DistilBERT: the encoder, or as a masked language model", "Sanh et al. 2019, arXiv 1910.01108",
    {{"DistilBertModel", "DistilBertForMaskedLM"}, distilbert_configuration, distilbert_tensors});

}  // namespace
}  // namespace plumb
