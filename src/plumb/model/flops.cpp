#include "plumb/model/flops.h"

#include <optional>

#include "plumb/model/kind.h"
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

/// Whether it is applied to what keys and values are projected from, which in a cross-attention is the source: an
/// adapter of keys or values, and all weights of fast weights. The gate reads the target.
bool reads_keys(const Parameter& parameter) {
  if (parameter.role == Role::weight) return !parameter.name.ends_with(".gate.weight");
  return parameter.role == Role::adapter &&
         (parameter.name.find(".k_lora.") != std::string::npos || parameter.name.find(".v_lora.") != std::string::npos);
}

/// The work of an attention of the model.
AttentionWork attention_work(const ModelConfig& config) {
  Parameters unused(at::kFloat, at::kMeta);  // trainers may count at once in several threads
  return make_attention(config.attention, unused,
                        {"attention", config.d_model, heads_of(config), config.options, nullptr})
      ->work();
}

}  // namespace

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
    if (place->sub_layer == SubLayerKind::cross_attention && reads_keys(parameter)) of_source = 1;
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
  if (kind_of(config).recurrent) return;
  work_ = attention_work(config);
  encoder_layers_ = static_cast<double>(depth.encoder_layers);
  decoder_layers_ = static_cast<double>(depth.decoder_layers);
}

double FlopCounter::attention(const Ragged& source, const Ragged& target) const {
  const auto of = [this](const Ragged& queries, const Ragged& keys, double share_of_pairs) {
    double sum =
        work_.per_query * static_cast<double>(queries.tokens()) + work_.per_key * static_cast<double>(keys.tokens());
    if (work_.per_pair > 0) sum += work_.per_pair * share_of_pairs * pairs(queries, keys);
    return sum;
  };
  double sum = 0;
  if (encoder_layers_ > 0) sum += encoder_layers_ * of(source, source, 1);
  if (decoder_layers_ > 0) sum += decoder_layers_ * of(target, target, 0.5);  // causal
  if (crosses_) sum += decoder_layers_ * of(target, source, 1);
  return sum;
}

double FlopCounter::attention_per_token(int64_t length) const {
  const Ragged one({length});
  return 2 * attention(one, one) / static_cast<double>(length);
}

double FlopCounter::forward(const Batch& batch) const {
  const double matrices = source_ * static_cast<double>(batch.source.size()) +
                          target_ * static_cast<double>(batch.target_input.size()) +
                          label_ * static_cast<double>(batch.labels.size());
  return 2 * (matrices + attention(batch.source_layout, batch.target_layout));
}

}  // namespace plumb
