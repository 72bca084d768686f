#include "plumb/model/flops.h"

#include <optional>

#include "plumb/nn/layer_id.h"

namespace plumb {
namespace {

/// Σ over the sequences of queries × keys.
double pairs(const Ragged& queries, const Ragged& keys) {
  double sum = 0;
  for (int64_t i = 0; i < queries.sequences(); ++i)
    sum += static_cast<double>(queries.length(i)) * static_cast<double>(keys.length(i));
  return sum;
}

/// Whether it belongs to an adapter of keys or values, which in a cross-attention reads the source.
bool adapts_keys_or_values(const Parameter& parameter) {
  return parameter.role == Role::adapter &&
         (parameter.name.find(".k_lora.") != std::string::npos || parameter.name.find(".v_lora.") != std::string::npos);
}

}  // namespace

bool multiplies_each_token(const Parameter& parameter) {
  switch (parameter.role) {
    case Role::weight:
    case Role::stacked_qkv:
    case Role::attention_output:
    case Role::feed_forward_input:
    case Role::feed_forward_output:
    case Role::adapter:
      return parameter.value.dim() == 2;
    default:
      return false;
  }
}

FlopCounter::FlopCounter(const Model& model) {
  const ModelConfig& config = model.config();
  for (const Parameter& parameter : model.parameters().all()) {
    const std::optional<LayerId> place = LayerId::of_parameter(parameter.name);
    if (!place || !place->layer || !multiplies_each_token(parameter)) continue;
    const auto elements = static_cast<double>(parameter.value.numel());
    double of_source = place->stack == StackKind::encoder ? 1 : 0;
    // Stacked in cross-attention: queries of the target, then keys and values of the source.
    if (place->sub_layer == SubLayerKind::cross_attention && !parameter.parts.empty())
      of_source = 1 - static_cast<double>(parameter.parts.front()) / static_cast<double>(parameter.value.size(0));
    if (place->sub_layer == SubLayerKind::cross_attention && adapts_keys_or_values(parameter)) of_source = 1;
    source_ += of_source * elements;
    target_ += (1 - of_source) * elements;
  }
  const Parameter* output = model.parameters().find("output.weight");  // null if it is the embedding
  label_ = static_cast<double>(model.outputs() * (output != nullptr ? output->value.size(1) : width_of(config)));
  for (const char* name : {"pooler.weight", "transform.weight"}) {
    if (const Parameter* matrix = model.parameters().find(name)) label_ += static_cast<double>(matrix->value.numel());
  }
  const ModelDepth depth = depth_of(config);
  crosses_ = depth.encoder_layers > 0 && depth.decoder_layers > 0;
  if (config.kind == "awd-lstm" || config.attention != "softmax") return;
  const int64_t head_size = config.head_size > 0 ? config.head_size : config.d_model / config.heads;
  const int64_t width = 2 * config.heads * head_size;  // the score and the weighted sum
  encoder_pair_ = static_cast<double>(width * depth.encoder_layers);
  decoder_pair_ = static_cast<double>(width * depth.decoder_layers);
}

double FlopCounter::forward(const Batch& batch) const {
  double multiplications = source_ * static_cast<double>(batch.source.size()) +
                           target_ * static_cast<double>(batch.target_input.size()) +
                           label_ * static_cast<double>(batch.labels.size());
  if (encoder_pair_ > 0) multiplications += encoder_pair_ * pairs(batch.source_layout, batch.source_layout);
  if (decoder_pair_ > 0) {
    multiplications += decoder_pair_ * pairs(batch.target_layout, batch.target_layout) / 2;  // causal
    if (crosses_) multiplications += decoder_pair_ * pairs(batch.target_layout, batch.source_layout);
  }
  return 2 * multiplications;
}

}  // namespace plumb
