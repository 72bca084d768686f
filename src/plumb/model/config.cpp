#include "plumb/model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/model/awd_lstm.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

namespace {

const bool kConfigRenamed = rename_key("model.initialisation", "model.initialization");

void require_one_of(const std::string& key, const std::string& value, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  const std::string guess = nearest(value, known);
  throw Error(
      fmt::format("model.{} = \"{}\" is unknown", key, value),
      guess.empty() ? "known: " + join(known) : fmt::format("did you mean \"{}\"? known: {}", guess, join(known)));
}

/// Throws Error unless smallest ≤ value ≤ largest. The bounds exceed those of any practical model, and no product
/// of them overflows.
void require_count(const std::string& key, int64_t value, int64_t smallest, int64_t largest) {
  if (value < smallest) {
    throw Error(fmt::format("model.{} = {} must be {}", key, value, smallest == 0 ? "0 or more" : "positive"));
  }
  if (value > largest)
    throw Error(fmt::format("model.{} = {} must be at most {}", key, value, with_thousands(largest)));
}

void require_not_negative(const std::string& key, double value) {
  if (!(value >= 0) || !std::isfinite(value)) throw Error(fmt::format("model.{} = {} must be 0 or more", key, value));
}

/// A kind of model, and the section of its options.
constexpr const char* kAwdLstm = "awd-lstm";

constexpr int64_t kMostFeatures = int64_t{1} << 20;
constexpr int64_t kMostLayers = 10'000;
constexpr int64_t kMostRows = 10'000'000;  // of an embedding or an output matrix

void validate_sizes(const ModelConfig& config) {
  const ModelDepth depth = depth_of(config);
  if (config.kind == kAwdLstm) {
    require_count("embedding_size", config.embedding_size, 1, kMostFeatures);
    require_count("hidden_size", config.hidden_size, 1, kMostFeatures);
    require_count("layers", config.layers, 1, kMostLayers);
    require_count("labels", config.labels, 0, kMostRows);
    return;
  }
  require_count("d_model", config.d_model, 1, kMostFeatures);
  require_count("feed_forward", config.feed_forward, 1, 16 * kMostFeatures);
  require_count("heads", config.heads, 1, kMostFeatures);
  require_count("kv_heads", config.kv_heads, 0, kMostFeatures);
  require_count("head_size", config.head_size, 0, kMostFeatures);
  if (config.kind != "decoder") require_count("encoder_layers", depth.encoder_layers, 1, kMostLayers);
  if (config.kind != "encoder") require_count("decoder_layers", depth.decoder_layers, 1, kMostLayers);
  require_count("max_positions", config.max_positions, 1, kMostRows);
  require_count("segments", config.segments, 0, kMostRows);
  require_count("labels", config.labels, 0, kMostRows);
  if (config.head_size == 0 && config.d_model % config.heads != 0) {
    throw Error(fmt::format("model.heads = {} does not divide model.d_model = {}", config.heads, config.d_model),
                "choose a divisor of model.d_model, or set model.head_size");
  }
  if (config.kv_heads > 0 && config.heads % config.kv_heads != 0) {
    throw Error(fmt::format("model.kv_heads = {} does not divide model.heads = {}", config.kv_heads, config.heads));
  }
}

void validate_vocabularies(const ModelConfig& config) {
  const bool reads_source = !is_language_model(config.kind);
  const bool reads_target = config.kind != "encoder";
  if ((reads_source && source_vocabulary_of(config) <= 0) || (reads_target && config.target_vocabulary <= 0)) {
    throw Error("the model's vocabulary sizes are unknown",
                "set model.source_vocabulary and model.target_vocabulary, or give --data");
  }
  require_count("source_vocabulary", config.source_vocabulary, 0, kMostRows);
  require_count("target_vocabulary", config.target_vocabulary, 0, kMostRows);
  if (reads_source && reads_target && config.share_embeddings == "all" &&
      config.source_vocabulary != config.target_vocabulary) {
    throw Error(fmt::format("vocabularies of sizes {} and {} cannot share embeddings", config.source_vocabulary,
                            config.target_vocabulary),
                "prepare the data with one joint vocabulary, or set model.share_embeddings = \"target\"");
  }
  if (config.kind == "decoder" && config.segments > 0) {
    throw Error("a decoder has no segments", "set model.segments = 0");
  }
}

void validate_adapters(const ModelConfig& config) {
  config.lora.validate();
  if (config.lora.rank > 0 && prescription_of(config.residual).unit_matrices) {
    throw Error(fmt::format("lora.rank = {}: adapters would change matrices that \"{}\" keeps at unit length",
                            config.lora.rank, config.residual),
                "leave out lora, or choose another residual scheme");
  }
}

void validate_awd_lstm(const ModelConfig& config) {
  const auto given = config.options.find(kAwdLstm);
  if (given != config.options.end()) given->second.as<AwdLstmOptions>().validate();
  if (prescription_of(config.residual).unit_matrices) {
    throw Error(fmt::format("the residual scheme \"{}\" needs a Transformer", config.residual),
                "an awd-lstm has no residual connections: leave model.residual out");
  }
  if (config.lora.rank > 0) {
    throw Error(fmt::format("lora.rank = {}: adapters need a Transformer", config.lora.rank),
                "an awd-lstm has no attention: leave lora out");
  }
  if (config.share_embeddings == "none" && config.labels == 0) {
    throw Error("model.share_embeddings = \"none\": the output matrix of an awd-lstm is its embedding",
                "leave model.share_embeddings out");
  }
}

/// For language models, which classify if they have labels.
void validate_pooling(const ModelConfig& config) {
  if (config.labels == 0) return;
  (void)poolings().at(config.pooling);
  if (config.pooling == "none" || config.pooler)
    throw Error(fmt::format("a model of kind \"{}\" with labels needs a pooling, and has no pooler", config.kind),
                fmt::format("set model.pooling = \"{}\" and model.pooler = false",
                            config.kind == kAwdLstm ? "concat" : "last"));
}

void validate_encoder(const ModelConfig& config) {
  (void)poolings().at(config.pooling);
  if (config.pooling != "none") {
    if (config.labels <= 0) throw Error("the number of labels is unknown", "set model.labels, or give --data");
  } else if (config.pooler) {
    throw Error("model.pooler = true has no effect with model.pooling = \"none\"");
  }
}

void validate_output_transform(const ModelConfig& config) {
  if (!config.output_transform || (config.kind == "encoder" && config.pooling == "none")) return;
  throw Error("model.output_transform = true needs an encoder that predicts tokens",
              "set model.kind = \"encoder\" and model.pooling = \"none\", or leave model.output_transform out");
}

}  // namespace

void describe(Fields& field, ModelConfig& config) {
  field("kind", config.kind);
  field("residual", config.residual);
  field("parallel", config.parallel);
  field("norm", config.norm);
  field("norm_eps", config.norm_eps);
  field("attention", config.attention);
  field("attention_bias", config.attention_bias);
  field("attention_gate", config.attention_gate);
  field("qk_norm", config.qk_norm);
  field("value_residual", config.value_residual);
  field("positions", config.positions);
  field("max_positions", config.max_positions);
  field("activation", config.activation);
  field("d_model", config.d_model);
  field("feed_forward", config.feed_forward);
  field("feed_forward_bias", config.feed_forward_bias);
  field("heads", config.heads);
  field("kv_heads", config.kv_heads);
  field("head_size", config.head_size);
  field("encoder_layers", config.encoder_layers);
  field("decoder_layers", config.decoder_layers);
  field("source_vocabulary", config.source_vocabulary);
  field("target_vocabulary", config.target_vocabulary);
  field("share_embeddings", config.share_embeddings);
  field("embedding_factor", config.embedding_factor);
  field("embedding_norm", config.embedding_norm);
  field("segments", config.segments);
  field("output_bias", config.output_bias);
  field("output_transform", config.output_transform);
  field("pooling", config.pooling);
  field("pooler", config.pooler);
  field("labels", config.labels);
  field("embedding_size", config.embedding_size);
  field("hidden_size", config.hidden_size);
  field("layers", config.layers);
  field("initialization", config.initialization);
  field("dropout", config.dropout);
  field.section(
      "lora", [&config](Fields& inner) { describe(inner, config.lora); }, config.lora.rank > 0);
  describe_options(field, residual_schemes(), config.residual, config.options);
  describe_options(field, attentions(), config.attention, config.options);
  describe_options(field, positions(), config.positions, config.options);
  describe_options(field, feed_forwards(), config.activation, config.options);
  const Options defaults(AwdLstmOptions{});
  Options& recurrent = config.options.try_emplace(kAwdLstm, defaults).first->second;
  field.section(
      kAwdLstm, [&recurrent](Fields& inner) { recurrent.visit(inner); },
      config.kind == kAwdLstm || !(recurrent == defaults));
}

bool ModelConfig::operator==(const ModelConfig& other) const {
  return ConfigWriter().section("model", *this).text() == ConfigWriter().section("model", other).text();
}

ModelDepth depth_of(const ModelConfig& config) {
  if (config.kind == kAwdLstm) return {0, config.layers};
  return {config.kind == "decoder" ? 0 : config.encoder_layers, config.kind == "encoder" ? 0 : config.decoder_layers};
}

int64_t source_vocabulary_of(const ModelConfig& config) {
  const bool alone = config.kind == "encoder";
  return alone && config.source_vocabulary == 0 ? config.target_vocabulary : config.source_vocabulary;
}

int64_t width_of(const ModelConfig& config) { return config.kind == kAwdLstm ? config.embedding_size : config.d_model; }

bool is_language_model(const std::string& kind) { return kind == "decoder" || kind == kAwdLstm; }

bool carries_state(const std::string& kind) { return kind == kAwdLstm; }

void require_kind(const ModelConfig& config, const std::string& kind) {
  if (config.kind == kind) return;
  throw Error(fmt::format("model.kind is \"{}\" but must be \"{}\"", config.kind, kind),
              kind == "encoder-decoder" ? "only an encoder-decoder can translate" : "");
}

void validate(const ModelConfig& config) {
  require_one_of("kind", config.kind, {"encoder-decoder", "decoder", "encoder", kAwdLstm});
  require_one_of("share_embeddings", config.share_embeddings, {"none", "target", "all"});
  require_one_of("attention_bias", config.attention_bias, {"all", "qkv", "none"});
  validate_sizes(config);
  validate_vocabularies(config);
  if (config.kind == "encoder") validate_encoder(config);
  if (is_language_model(config.kind)) validate_pooling(config);
  validate_output_transform(config);
  validate_adapters(config);
  if (config.kind == kAwdLstm) validate_awd_lstm(config);
  if (config.initialization == "theory" &&
      (config.heads != 1 || (config.head_size != 0 && config.head_size != config.d_model))) {
    throw Error(
        fmt::format("the initialization \"theory\" requires a single head of size d_model, not {} heads", config.heads),
        "set model.heads = 1");
  }
  require_not_negative("embedding_factor", config.embedding_factor);
  if (!(config.dropout >= 0 && config.dropout < 1))
    throw Error(fmt::format("model.dropout = {} must lie in [0, 1)", config.dropout));
  if (!(config.norm_eps > 0) || !std::isfinite(config.norm_eps))
    throw Error(fmt::format("model.norm_eps = {} must be positive", config.norm_eps));
}

}  // namespace plumb
