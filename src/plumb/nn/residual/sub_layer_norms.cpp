#include "plumb/nn/residual/sub_layer_norms.h"

#include <fmt/format.h>

namespace plumb {

std::string layer_prefix(const StackShape& shape, int64_t layer) {
  return to_string(LayerId{shape.stack, layer}) + ".";
}

std::vector<Tensor> sub_layer_vectors(Parameters& parameters, const StackShape& shape, const std::string& name,
                                      double value) {
  std::vector<Tensor> vectors;
  for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
    const std::string full_name = fmt::format("{}{}{}.weight", layer_prefix(shape, layer), name, position + 1);
    vectors.push_back(parameters.add_constant(full_name, {shape.d_model}, value));
  });
  return vectors;
}

SubLayerNorms::SubLayerNorms(Parameters& parameters, const StackShape& shape, const std::string& name)
    : sub_layers_(shape.sub_layers) {
  for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
    const std::string prefix = fmt::format("{}{}{}", layer_prefix(shape, layer), name, position + 1);
    norms_.push_back(norms().at(shape.norm).make(parameters, prefix, shape.d_model, shape.norm_eps));
  });
}

std::unique_ptr<Norm> make_final_norm(Parameters& parameters, const StackShape& shape, const std::string& name) {
  const std::string prefix = to_string(shape.stack) + "." + name;
  return norms().at(shape.norm).make(parameters, prefix, shape.d_model, shape.norm_eps);
}

}  // namespace plumb
