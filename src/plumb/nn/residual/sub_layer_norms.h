// One norm per sub-layer of a stack, as most residual schemes need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/nn/norm/norm.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

/// "encoder.layers.3.": the prefix of a layer's parameter names.
std::string layer_prefix(const StackShape& shape, int64_t layer);

/// The index of a sub-layer within its stack, from 0.
inline int64_t index_of(const SubLayer& f, const StackShape& shape) {
  return f.layer() * shape.sub_layers + f.position;
}

/// Calls visit(layer, position) for each sub-layer of a stack in its order, both from 0.
template <typename Visit>
void for_each_sub_layer(const StackShape& shape, const Visit& visit) {
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    for (int64_t position = 0; position < shape.sub_layers; ++position) visit(layer, position);
  }
}

/// Trained vectors, (d_model), for the sub-layers of a stack, named "STACK.layers.I.NAMEk.weight" as norms are. All
/// elements are `value` at first.
std::vector<Tensor> sub_layer_vectors(Parameters& parameters, const StackShape& shape, const std::string& name,
                                      double value);

/// Norms of the stack's kind, named "STACK.layers.I.NAMEk", where k is the position of the sub-layer from 1.
class SubLayerNorms {
 public:
  SubLayerNorms(Parameters& parameters, const StackShape& shape, const std::string& name);
  [[nodiscard]] const Norm& at(const SubLayer& f) const {
    return *norms_[static_cast<size_t>(f.layer() * sub_layers_ + f.position)];
  }

 private:
  int64_t sub_layers_;
  std::vector<std::unique_ptr<Norm>> norms_;
};

/// A norm at the end of a stack: "encoder.norm".
std::unique_ptr<Norm> make_final_norm(Parameters& parameters, const StackShape& shape,
                                      const std::string& name = "norm");

}  // namespace plumb
