#include "plumb/model/config.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {
namespace {

// Bounds beyond those of any practical model; no product of them overflows.
constexpr int64_t kMostFeatures = int64_t{1} << 20;
constexpr int64_t kMostLayers = 10'000;
constexpr int64_t kMostRows = 10'000'000;  // of an embedding or an output matrix

void check_layers(const char* key, int64_t layers) {
  if (layers == 0) throw Error(fmt::format("model.{} = 0 must be at least 1", key));
}

/// Of the attention of a Transformer.
void check_heads(const ModelConfig& config) {
  if (config.head_size == 0 && config.d_model % config.heads != 0) {
    throw Error(fmt::format("model.heads = {} does not divide model.d_model = {}", config.heads, config.d_model),
                "choose a divisor of model.d_model, or set model.head_size");
  }
  if (config.kv_heads > 0 && config.heads % config.kv_heads != 0) {
    throw Error(fmt::format("model.kv_heads = {} does not divide model.heads = {}", config.kv_heads, config.heads));
  }
}

void check_vocabularies(const ModelConfig& config, const ModelKind& kind) {
  if ((kind.reads_source && source_vocabulary_of(config) == 0) ||
      (kind.reads_target && config.target_vocabulary == 0)) {
    throw Error("the model's vocabulary sizes are unknown",
                "set model.source_vocabulary and model.target_vocabulary, or give --data");
  }
}

/// Only classifiers have labels.
void check_labels(const ModelConfig& config, const ModelKind& kind) {
  if (config.labels == 0 || (kind.classifies() && !(kind.only_encodes() && config.pooling == "none"))) return;
  throw Error(fmt::format("model.labels = {}: a model of kind \"{}\"{} predicts tokens", config.labels, config.kind,
                          kind.only_encodes() ? " and pooling \"none\"" : ""),
              kind.only_encodes() ? "leave model.labels out, or choose a pooling" : "leave model.labels out");
}

/// Of a language model, which classifies if it has labels.
void check_pooling(const ModelConfig& config, const ModelKind& kind) {
  if (config.pooling == "none" || config.pooler)
    throw Error(fmt::format("a model of kind \"{}\" with labels needs a pooling, and has no pooler", config.kind),
                fmt::format("set model.pooling = \"{}\" and model.pooler = false", kind.pooling));
}

void check_output_transform(const ModelConfig& config, const ModelKind& kind) {
  if (!config.output_transform || (kind.only_encodes() && config.pooling == "none")) return;
  throw Error("model.output_transform = true needs an encoder that predicts tokens",
              "set model.kind = \"encoder\" and model.pooling = \"none\", or leave model.output_transform out");
}

void check_adapters(const ModelConfig& config) {
  if (config.lora.rank > 0 && prescription_of(config.residual).unit_matrices) {
    throw Error(fmt::format("model.lora.rank = {}: adapters would change matrices that \"{}\" keeps at unit length",
                            config.lora.rank, config.residual),
                "leave out lora, or choose another residual scheme");
  }
  if (config.lora.adapts("gate") && !config.attention_gate) {
    throw Error("model.lora.matrices has \"gate\", and the attentions have no gate",
                "leave it out, or set model.attention_gate = true");
  }
}

/// The stacks may differ in their streams, but not in what a scheme prescribes to the model.
void check_stacks(const ModelConfig& config) {
  if (config.kind != "encoder-decoder") {
    const char* key = config.encoder_residual != "same"         ? "encoder_residual"
                      : config.encoder_initialization != "same" ? "encoder_initialization"
                      : config.center_memory                    ? "center_memory"
                                                                : nullptr;
    if (key == nullptr) return;
    throw Error(fmt::format("model.{} needs an encoder-decoder, and model.kind is \"{}\"", key, config.kind),
                "leave it out");
  }
  const Prescription encoder = prescription_of(residual_of(config, StackKind::encoder));
  if (encoder.unit_matrices == prescription_of(config.residual).unit_matrices) return;
  throw Error(
      fmt::format("model.encoder_residual = \"{}\" cannot be combined with model.residual = \"{}\": one of them "
                  "keeps all matrices at unit length",
                  config.encoder_residual, config.residual),
      "choose two other schemes, or one for both");
}

void check_dropout(const ModelConfig& config) {
  if (config.attention_dropout > 0 && config.attention != "softmax") {
    throw Error(fmt::format("model.attention_dropout = {}: the attention \"{}\" has no weights to drop",
                            config.attention_dropout, config.attention),
                "set it to 0, or model.attention = \"softmax\"");
  }
}

void check_initialization(const ModelConfig& config) {
  if ((config.initialization != "theory" && config.encoder_initialization != "theory") ||
      (config.heads == 1 && (config.head_size == 0 || config.head_size == config.d_model)))
    return;
  throw Error(
      fmt::format("the initialization \"theory\" requires a single head of size d_model, not {} heads", config.heads),
      "set model.heads = 1");
}

}  // namespace

void describe(Fields& field, ModelConfig& config) {
  field("kind", config.kind,
        "kind of model; if it is left out, `plumb train` and `plumb check` take the one that learns the data: "
        "`encoder-decoder` for pairs, `decoder` for text, `encoder` for labels",
        name_in(model_kinds()));
  field("residual", config.residual, "residual scheme; set by a study", name_in(residual_schemes()).open_choices("/"));
  field("encoder_residual", config.encoder_residual,
        "`encoder-decoder` only: residual scheme of the encoder, if it is another than the decoder's",
        name_in(residual_schemes()).or_value("same").open_choices("/"));
  field(
      "center_memory", config.center_memory,
      "`encoder-decoder` only: what cross-attention reads are the encoder's states minus their mean over the sentence, "
      "each scaled to mean square 1");
  field("parallel", config.parallel,
        "self-attention and feed-forward read the same input and their outputs are added, as one sub-layer (GPT-J)");
  field("norm", config.norm, "norm", name_in(norms()));
  field("norm_eps", config.norm_eps, "eps in the norm", above(0));
  field("attention", config.attention, "attention", name_in(attentions()));
  field("attention_bias", config.attention_bias, "which attention projections have biases; `qkv`: all but the output",
        one_of({"all", "qkv", "none"}));
  field("attention_gate", config.attention_gate,
        "multiplies what each attention returns by σ(W_g·x), x the input of its queries, before the output projection "
        "(Qiu et al. 2025, arXiv 2505.06708)");
  field("qk_norm", config.qk_norm, "a norm over the queries and keys of each head", name_in(norms()));
  field("value_residual", config.value_residual,
        "self-attention mixes the first layer's values into its own: v ← λ₁v + λ₂v₁, λ trained, initially ½ and ½ "
        "(Zhou et al. 2024, arXiv 2410.17897)");
  field("positions", config.positions, "position encoding", name_in(positions()));
  field("max_positions", config.max_positions, "number of learned positions", within(1, kMostRows));
  field("activation", config.activation, "kind of feed-forward sub-layer", name_in(feed_forwards()));
  field("d_model", config.d_model, "model width", within(1, kMostFeatures));
  field("feed_forward", config.feed_forward, "inner width of the feed-forward sub-layer",
        within(1, 16 * kMostFeatures));
  field("feed_forward_bias", config.feed_forward_bias, "whether the feed-forward matrices have biases");
  field("heads", config.heads, "heads per attention", within(1, kMostFeatures));
  field("kv_heads", config.kv_heads,
        "key and value heads, each shared by a group of query heads (Ainslie et al. 2023, arXiv 2305.13245); must "
        "divide `heads`; 0: same as `heads`",
        within(0, kMostFeatures));
  field("head_size", config.head_size, "features per head; 0: `d_model`/`heads`", within(0, kMostFeatures));
  field("encoder_layers", config.encoder_layers, "ignored by a `decoder`; set by a study", within(0, kMostLayers));
  field("decoder_layers", config.decoder_layers, "ignored by an `encoder`; set by a study", within(0, kMostLayers));
  field("source_vocabulary", config.source_vocabulary,
        "0: taken from the data; for an `encoder`, same as `target_vocabulary`", within(0, kMostRows));
  field("target_vocabulary", config.target_vocabulary, "0: taken from the data", within(0, kMostRows));
  field("share_embeddings", config.share_embeddings,
        "`target`: the target embedding is also the output matrix; `all`: the source embedding too, which needs a "
        "joint vocabulary",
        one_of({"none", "target", "all"}));
  field("embedding_factor", config.embedding_factor, "multiplies token embeddings; 0: √d_model", at_least(0));
  field("embedding_norm", config.embedding_norm, "whether the sum of the embeddings is normalized (BERT)");
  field("segments", config.segments,
        "number of segment embeddings in the source (BERT), 2 for sentence pairs; 0: segments are not distinguished",
        within(0, kMostRows));
  field("output_bias", config.output_bias, "whether the output layer over the vocabulary has a bias");
  field("output_transform", config.output_transform,
        "`encoder` with `pooling = \"none\"` only: a dense layer, GELU and a norm before the output layer (BERT's "
        "masked language model)");
  field("pooling", config.pooling,
        "an `encoder`, or a `decoder` or `awd-lstm` with labels: how a sequence is reduced to one vector",
        name_in(poolings()));
  field("pooler", config.pooler, "`encoder` only: applies tanh(W·x + b) to that vector (BERT)");
  field("labels", config.labels,
        "number of labels that a classifier distinguishes; 0: taken from the data for classification; without labels, "
        "a `decoder` or `awd-lstm` is a language model",
        within(0, kMostRows));
  field("embedding_size", config.embedding_size, "`awd-lstm` only: width of the embedding and of the last layer",
        within(1, kMostFeatures));
  field("hidden_size", config.hidden_size, "`awd-lstm` only: width of the other layers", within(1, kMostFeatures));
  field("layers", config.layers, "`awd-lstm` only: number of layers", within(1, kMostLayers));
  field("initialization", config.initialization, "initialization", name_in(initializations()));
  field("encoder_initialization", config.encoder_initialization,
        "`encoder-decoder` only: initialization of the encoder's layers, if it is another",
        name_in(initializations()).or_value("same"));
  field("dropout", config.dropout,
        "dropout rate in training, on embeddings and on the output of every sub-layer; an `awd-lstm` has separate "
        "rates",
        below_one());
  field("attention_dropout", config.attention_dropout,
        "dropout rate in training on the weights of softmax attention, which then forms them one sequence at a time",
        below_one());
  field("activation_dropout", config.activation_dropout,
        "dropout rate in training on the inner features of every feed-forward sub-layer", below_one());
  field.section(
      "initialization_scale", [&config](Fields& inner) { describe(inner, config.initialization_scale); },
      config.initialization_scale != InitializationScale{});
  field.section(
      "lora", [&config](Fields& inner) { describe(inner, config.lora); }, config.lora.rank > 0);
  describe_options(field, residual_schemes(), config.residual, config.options);
  describe_options(field, attentions(), config.attention, config.options);
  describe_options(field, positions(), config.positions, config.options);
  describe_options(field, model_kinds(), config.kind, config.options);
}

bool ModelConfig::operator==(const ModelConfig& other) const {
  return ConfigWriter().section("model", *this).text() == ConfigWriter().section("model", other).text();
}

ModelDepth depth_of(const ModelConfig& config) {
  const ModelKind& kind = kind_of(config);
  if (kind.recurrent) return {0, config.layers};
  return {kind.reads_source ? config.encoder_layers : 0, kind.reads_target ? config.decoder_layers : 0};
}

bool has_what_it_sets(const ModelConfig& config, std::string_view key) {
  const ModelKind& kind = kind_of(config);
  if (key == "layers" || key == "embedding_size" || key == "hidden_size") return kind.recurrent;
  if (key == "encoder_layers") return kind.reads_source && !kind.recurrent;
  if (key == "decoder_layers") return kind.reads_target && !kind.recurrent;
  return true;
}

const std::string& residual_of(const ModelConfig& config, StackKind stack) {
  return stack == StackKind::encoder && config.encoder_residual != "same" ? config.encoder_residual : config.residual;
}

int64_t source_vocabulary_of(const ModelConfig& config) {
  const bool alone = kind_of(config).only_encodes();
  return alone && config.source_vocabulary == 0 ? config.target_vocabulary : config.source_vocabulary;
}

int64_t text_vocabulary_of(const ModelConfig& config) {
  return kind_of(config).only_encodes() ? source_vocabulary_of(config) : config.target_vocabulary;
}

ops::HeadShape heads_of(const ModelConfig& config) {
  // Descriptions of other programs' models are read before they are checked: 0 heads are rejected later.
  const int64_t usual_size = config.heads > 0 ? config.d_model / config.heads : 0;
  return {config.heads, config.kv_heads > 0 ? config.kv_heads : config.heads,
          config.head_size > 0 ? config.head_size : usual_size};
}

int64_t width_of(const ModelConfig& config) {
  return kind_of(config).recurrent ? config.embedding_size : config.d_model;
}

void require_kind(const ModelConfig& config, const std::string& kind) {
  if (config.kind == kind) return;
  throw Error(fmt::format("model.kind is \"{}\" but must be \"{}\"", config.kind, kind));
}

void validate(const ModelConfig& config) {
  require_valid("model", config);
  const ModelKind& kind = kind_of(config);
  if (!kind.recurrent) {
    if (kind.reads_source) check_layers("encoder_layers", config.encoder_layers);
    if (kind.reads_target) check_layers("decoder_layers", config.decoder_layers);
    check_heads(config);
    check_dropout(config);
  }
  check_vocabularies(config, kind);
  check_labels(config, kind);
  if (kind.models_language() && config.labels > 0) check_pooling(config, kind);
  check_output_transform(config, kind);
  check_adapters(config);
  check_stacks(config);
  kind.check(config);
  check_initialization(config);
}

}  // namespace plumb
