#include "plumb/plan/model_cost.h"

#include <set>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/model/model.h"
#include "plumb/nn/layer_id.h"
#include "plumb/optim/optimizer.h"

namespace plumb::plan {
namespace {

bool is_table(const Parameter& parameter) {
  return parameter.role == Role::embedding ||
         (parameter.role == Role::position && !LayerId::of_parameter(parameter.name));
}

}  // namespace

double ModelCost::attention_flops(int64_t sequence) const {
  return flops.attention_per_token(sequence) / static_cast<double>(attentions);
}

double ModelCost::layers_flops(int64_t sequence) const {
  return flops.matrices_per_token() + flops.attention_per_token(sequence);
}

double ModelCost::training_flops(int64_t sequence) const { return 3 * (layers_flops(sequence) + output_flops); }

ModelCost cost_of(const ModelConfig& config) {
  if (kind_of(config).recurrent) {
    throw Error("the operations and the memory of recurrent layers are not known to the plan",
                "give a configuration of a Transformer");
  }
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  const std::unique_ptr<Model> model = make_model(config);
  ModelCost cost;
  cost.parameters = model->parameters().count();
  std::set<LayerId> layers;
  double in_layers = 0;
  for (const Parameter& parameter : model->parameters().all()) {
    const auto elements = static_cast<double>(parameter.value.numel());
    const std::optional<LayerId> id = LayerId::of_parameter(parameter.name);
    if (parameter.name == "output.weight") cost.output_matrix = parameter.value.numel();
    if (is_table(parameter)) {
      cost.embeddings += parameter.value.numel();
    } else if (id && id->layer) {
      layers.insert({id->stack, id->layer});
      in_layers += elements;
      if (parameter.role == Role::stacked_qkv) ++cost.attentions;
      if (parameter.name.ends_with("linear3.weight")) cost.gated = true;
    }
  }
  cost.layers = std::ssize(layers);
  if (cost.layers == 0) throw Error("a model without layers cannot be planned");
  cost.layer_parameters = in_layers / static_cast<double>(cost.layers);
  cost.flops = FlopCounter(*model);
  cost.outputs = model->outputs();
  cost.d_model = width_of(config);
  cost.heads = config.heads;
  cost.kv_heads = heads_of(config).kv_heads;
  cost.head_size = heads_of(config).size;
  cost.feed_forward = config.feed_forward;
  cost.quadratic = config.attention == "softmax";
  cost.dropout = config.dropout > 0;
  cost.output_flops = cost.flops.per_label();
  return cost;
}

double optimizer_bytes(const ModelConfig& config, const std::string& optimizer, const VariantOptions& options) {
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  const std::unique_ptr<Model> model = make_model(config);
  double bytes = 0;
  for (const auto& [name, tensor] : make_optimizer(optimizer, model->parameters(), options)->state())
    bytes += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.element_size());
  return bytes;
}

}  // namespace plumb::plan
