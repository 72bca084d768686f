#include "plumb/model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

namespace {

const bool renamed = rename_key("model.initialisation", "model.initialization");

}  // namespace

void describe(Fields& field, ModelConfig& config) {
  field("kind", config.kind);
  field("residual", config.residual);
  field("norm", config.norm);
  field("norm_eps", config.norm_eps);
  field("attention", config.attention);
  field("qk_norm", config.qk_norm);
  field("positions", config.positions);
  field("max_positions", config.max_positions);
  field("activation", config.activation);
  field("d_model", config.d_model);
  field("feed_forward", config.feed_forward);
  field("feed_forward_bias", config.feed_forward_bias);
  field("heads", config.heads);
  field("encoder_layers", config.encoder_layers);
  field("decoder_layers", config.decoder_layers);
  field("source_vocabulary", config.source_vocabulary);
  field("target_vocabulary", config.target_vocabulary);
  field("share_embeddings", config.share_embeddings);
  field("initialization", config.initialization);
  field("dropout", config.dropout);
  describe_options(field, residual_schemes(), config.residual, config.options);
  describe_options(field, attentions(), config.attention, config.options);
  describe_options(field, positions(), config.positions, config.options);
  describe_options(field, feed_forwards(), config.activation, config.options);
}

bool ModelConfig::operator==(const ModelConfig& other) const {
  return ConfigWriter().section("model", *this).text() == ConfigWriter().section("model", other).text();
}

ModelDepth depth_of(const ModelConfig& config) {
  return {config.kind == "decoder" ? 0 : config.encoder_layers, config.decoder_layers};
}

void validate(const ModelConfig& config) {
  const auto one_of = [](const std::string& key, const std::string& value, const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), value) != known.end()) return;
    const std::string guess = nearest(value, known);
    throw Error(
        fmt::format("model.{} = \"{}\" is unknown", key, value),
        guess.empty() ? "known: " + join(known) : fmt::format("did you mean \"{}\"? known: {}", guess, join(known)));
  };
  const auto positive = [](const std::string& key, int64_t value) {
    if (value <= 0) throw Error(fmt::format("model.{} = {} must be positive", key, value));
  };
  one_of("kind", config.kind, {"encoder-decoder", "decoder"});
  one_of("share_embeddings", config.share_embeddings, {"none", "target", "all"});
  positive("d_model", config.d_model);
  positive("feed_forward", config.feed_forward);
  positive("heads", config.heads);
  positive("encoder_layers", config.encoder_layers);
  positive("decoder_layers", config.decoder_layers);
  positive("max_positions", config.max_positions);
  if (config.d_model % config.heads != 0) {
    throw Error(fmt::format("model.heads = {} does not divide model.d_model = {}", config.heads, config.d_model));
  }
  const bool decoder_only = config.kind == "decoder";
  if ((config.source_vocabulary <= 0 && !decoder_only) || config.target_vocabulary <= 0) {
    throw Error("the model's vocabulary sizes are not known",
                "set model.source_vocabulary and model.target_vocabulary, or give --data");
  }
  if (!decoder_only && config.share_embeddings == "all" && config.source_vocabulary != config.target_vocabulary) {
    throw Error(fmt::format("embeddings are shared by vocabularies of {} and {}", config.source_vocabulary,
                            config.target_vocabulary),
                "prepare the data with one joint vocabulary, or set model.share_embeddings = \"target\"");
  }
  if (config.initialization == "theory" && config.heads != 1) {
    throw Error(fmt::format("the theory initialization is for a single head, not {}", config.heads),
                "set model.heads = 1");
  }
  if (!(config.dropout >= 0 && config.dropout < 1))
    throw Error(fmt::format("model.dropout = {} must lie in [0, 1)", config.dropout));
  if (!(config.norm_eps > 0) || !std::isfinite(config.norm_eps))
    throw Error(fmt::format("model.norm_eps = {} must be positive", config.norm_eps));
}

}  // namespace plumb
