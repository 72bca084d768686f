#include "plumb/nn/residual/sub_layer_norms.h"

#include <fmt/format.h>

namespace plumb {

std::string layer_prefix(const StackShape& shape, int64_t layer) {
  return to_string(LayerId{shape.stack, layer}) + ".";
}

SubLayerNorms::SubLayerNorms(Parameters& parameters, const StackShape& shape, const std::string& name)
    : sub_layers_(shape.sub_layers) {
  const NormFactory& make = norms().at(shape.norm).make;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    for (int64_t position = 1; position <= shape.sub_layers; ++position) {
      const std::string prefix = fmt::format("{}{}{}", layer_prefix(shape, layer), name, position);
      norms_.push_back(make(parameters, prefix, shape.d_model, shape.norm_eps));
    }
  }
}

std::unique_ptr<Norm> make_final_norm(Parameters& parameters, const StackShape& shape) {
  return norms().at(shape.norm).make(parameters, to_string(shape.stack) + ".norm", shape.d_model, shape.norm_eps);
}

}  // namespace plumb
