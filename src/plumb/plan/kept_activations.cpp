#include "plumb/plan/kept_activations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "plumb/base/error.h"

namespace plumb::plan {
namespace {

constexpr double kFloat = 4, kHalf = 2;  // bytes

void require(const char* key, const std::string& value, std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), value) == known.end()) {
    throw Error(fmt::format("model.{} = \"{}\": what its layers keep in memory is not known here", key, value),
                fmt::format("known: {}", fmt::join(known.begin(), known.end(), ", ")));
  }
}

void require_off(const char* key, bool on) {
  if (on) throw Error(fmt::format("model.{}: what its layers keep in memory is not known here", key));
}

void require_known(const ModelConfig& config) {
  require("kind", config.kind, {"decoder"});
  require("residual", config.residual, {"pre-ln", "post-ln"});
  require("norm", config.norm, {"layernorm", "rmsnorm"});
  require("attention", config.attention, {"softmax"});
  require("positions", config.positions, {"none", "sinusoidal", "learned", "rotary", "transformer-xl"});
  require("activation", config.activation, {"relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu", "geglu-tanh"});
  require("qk_norm", config.qk_norm, {"none"});
  require_off("parallel", config.parallel);
  require_off("attention_gate", config.attention_gate);
  require_off("value_residual", config.value_residual);
  require_off("embedding_norm", config.embedding_norm);
  require_off("labels", config.labels > 0);
  require_off("lora", config.lora.rank > 0);
}

/// The sizes of a layer, in elements.
struct Widths {
  explicit Widths(const ModelConfig& config)
      : d(static_cast<double>(config.d_model)),
        f(static_cast<double>(config.feed_forward)),
        heads(static_cast<double>(config.heads)),
        size(config.head_size > 0 ? static_cast<double>(config.head_size) : d / heads),
        w(heads * size),
        k(config.kv_heads > 0 ? static_cast<double>(config.kv_heads) * size : w),
        gated(config.activation == "swiglu" || config.activation.starts_with("geglu")) {}

  double d, f, heads, size, w, k;
  bool gated;

  /// Elements of a layer's matrices that multiply each token.
  [[nodiscard]] double matrices() const { return d * (2 * w + 2 * k + (gated ? 3 : 2) * f); }
};

/// Per token, in one layer.
double kept_by_token(const ModelConfig& config, const Widths& widths, bool rounded) {
  const double operand = rounded ? kHalf : kFloat;
  const auto& [d, f, heads, size, w, k, gated] = widths;
  const double norm = kFloat * (d + 2);
  const double attention = norm + operand * d + kFloat * (w + 2 * k) + operand * w;
  double inner = kFloat * f + operand * f;
  if (gated) inner = 3 * kFloat * f + operand * f;
  if (config.activation == "relu" && !rounded) inner = kFloat * f;
  const double inputs = gated && rounded ? 2 * operand * d : operand * d;
  return attention + norm + inputs + inner;
}

/// Of Transformer-XL's attention in one layer: the query with either bias, the logarithm of each head's sum, the
/// float32 result if its reader keeps a rounded copy, and the projected distances.
double kept_by_distances(const Widths& widths, const LocalBatch& batch) {
  const double by_token = 2 * widths.w + widths.heads + (batch.rounded ? widths.w : 0);
  return kFloat * (static_cast<double>(batch.tokens()) * by_token + static_cast<double>(batch.length) * widths.w);
}

/// Temporary memory: the logits of a chunk and the states that they are computed from, or the gradients within the
/// feed-forward sub-layer of the last layer, whichever is more.
double working(const ModelConfig& config, const Widths& widths, const LocalBatch& batch) {
  const auto tokens = static_cast<double>(batch.tokens());
  const auto vocabulary = static_cast<double>(config.target_vocabulary);
  const double number = batch.rounded ? kFloat + kHalf : kFloat;  // with its rounded copy
  const double rows = std::min(tokens, std::clamp((1 << 22) / vocabulary, 64.0, 1024.0));
  const double output =
      number * (rows * vocabulary + tokens * widths.d) + (batch.rounded ? kHalf * vocabulary * widths.d : 0);
  const double feed_forward = tokens * (2 * kFloat * widths.d + ((widths.gated ? 4 : 2) * kFloat) * widths.f);
  return std::max(output, feed_forward);
}

}  // namespace

KeptActivations kept_activations(const ModelConfig& config, const LocalBatch& batch) {
  require_known(config);
  const Widths widths(config);
  const auto layers = static_cast<double>(config.decoder_layers), tokens = static_cast<double>(batch.tokens());
  KeptActivations kept;
  kept.layers = layers * tokens * kept_by_token(config, widths, batch.rounded);
  if (config.residual == "pre-ln") kept.layers += tokens * kFloat * (widths.d + 2);
  if (config.positions == "transformer-xl") {
    kept.layers += layers * kept_by_distances(widths, batch);
  }
  if (config.positions == "rotary") kept.layers += tokens * kFloat * widths.size;
  if (batch.rounded) kept.weights = layers * kHalf * widths.matrices();
  kept.output = kFloat * widths.d * (tokens + static_cast<double>(config.target_vocabulary));
  kept.working = working(config, widths, batch);
  return kept;
}

}  // namespace plumb::plan
