#include "plumb/model/flops.h"

#include <optional>

#include "plumb/nn/layer_id.h"

namespace plumb {
namespace {

struct TokenCounts {
  double source = 0, target = 0;
};

/// Applications of the elements of a matrix: its elements times the tokens that it is applied to.
double applications(const Parameter& parameter, const LayerId& place, const TokenCounts& tokens) {
  const auto elements = static_cast<double>(parameter.value.numel());
  if (place.stack == StackKind::encoder) return elements * tokens.source;
  if (place.sub_layer != SubLayerKind::cross_attention || parameter.parts.empty()) return elements * tokens.target;
  // Stacked: queries of the target, then keys and values of what is read.
  const auto rows = static_cast<double>(parameter.value.size(0));
  const double queries = static_cast<double>(parameter.parts.front()) / rows;
  return elements * (queries * tokens.target + (1 - queries) * tokens.source);
}

bool is_matrix(const Parameter& parameter) {
  switch (parameter.role) {
    case Role::weight:
    case Role::stacked_qkv:
    case Role::attention_output:
    case Role::feed_forward_input:
    case Role::feed_forward_output:
      return parameter.value.dim() == 2;
    default:
      return false;
  }
}

/// Σ over the sequences of queries × keys.
double pairs(const Ragged& queries, const Ragged& keys) {
  double sum = 0;
  for (int64_t i = 0; i < queries.sequences(); ++i)
    sum += static_cast<double>(queries.length(i)) * static_cast<double>(keys.length(i));
  return sum;
}

}  // namespace

double forward_flops(const Model& model, const Batch& batch) {
  const ModelConfig& config = model.config();
  const TokenCounts tokens = {static_cast<double>(batch.source.size()), static_cast<double>(batch.target_input.size())};
  double multiplications = 0;
  for (const Parameter& parameter : model.parameters().all()) {
    const std::optional<LayerId> place = LayerId::of_parameter(parameter.name);
    if (place && place->layer && is_matrix(parameter)) multiplications += applications(parameter, *place, tokens);
  }
  multiplications += static_cast<double>(batch.labels.size()) * static_cast<double>(config.d_model * model.outputs());
  if (config.attention == "softmax") {
    const int64_t head_size = config.head_size > 0 ? config.head_size : config.d_model / config.heads;
    const auto width = 2 * static_cast<double>(config.heads * head_size);  // a score and a weighted sum
    const ModelDepth depth = depth_of(config);
    const bool encodes = depth.encoder_layers > 0, decodes = depth.decoder_layers > 0;
    if (encodes)
      multiplications +=
          width * static_cast<double>(depth.encoder_layers) * pairs(batch.source_layout, batch.source_layout);
    if (decodes) {
      double each = pairs(batch.target_layout, batch.target_layout) / 2;  // causal
      if (encodes) each += pairs(batch.target_layout, batch.source_layout);
      multiplications += width * static_cast<double>(depth.decoder_layers) * each;
    }
  }
  return 2 * multiplications;
}

}  // namespace plumb
