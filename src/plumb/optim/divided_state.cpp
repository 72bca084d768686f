#include "plumb/optim/divided_state.h"

#include "plumb/optim/sharded.h"

namespace plumb {

std::optional<size_t> parameter_of(const std::string& tensor, const Parameters& parameters) {
  if (const Parameter* found = parameters.find(tensor)) return static_cast<size_t>(found - parameters.all().data());
  return owner_of(tensor, parameters);
}

NamedTensors pieces_of(const NamedTensors& whole, const Parameters& parameters, const LayerDivision& division) {
  NamedTensors pieces;
  for (const auto& [name, tensor] : whole) {
    const auto parameter = parameter_of(name, parameters);
    pieces.emplace_back(name, parameter ? division.piece(*parameter, tensor) : tensor);
  }
  return pieces;
}

NamedTensors whole_of(const NamedTensors& pieces, const Parameters& parameters, const LayerDivision& division) {
  NamedTensors whole;
  for (const auto& [name, tensor] : pieces) {
    const auto parameter = parameter_of(name, parameters);
    const Tensor found = parameter ? division.whole(*parameter, tensor.detach()) : tensor;
    if (division.is_first()) whole.emplace_back(name, found.is_alias_of(tensor) ? found.clone() : found);
  }
  return whole;
}

}  // namespace plumb
