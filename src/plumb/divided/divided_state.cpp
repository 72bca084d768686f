#include "plumb/divided/divided_state.h"

namespace plumb {

std::vector<StateTensor> state_of(const NamedTensors& values, const Parameters& parameters) {
  std::vector<StateTensor> state;
  for (const auto& [name, value] : values) {
    if (const Parameter* found = parameters.find(name)) {
      state.push_back({.parameter = static_cast<size_t>(found - parameters.all().data()), .value = value});
    } else {
      state.push_back({.kind = name, .value = value});
    }
  }
  return state;
}

NamedTensors pieces_of(const std::vector<StateTensor>& whole, const Parameters& parameters,
                       const LayerDivision& division) {
  NamedTensors pieces;
  for (const StateTensor& tensor : whole) {
    pieces.emplace_back(name_of(tensor, parameters),
                        tensor.parameter ? division.piece(*tensor.parameter, tensor.value) : tensor.value);
  }
  return pieces;
}

NamedTensors whole_of(const std::vector<StateTensor>& pieces, const Parameters& parameters,
                      const LayerDivision& division) {
  NamedTensors whole;
  for (const StateTensor& tensor : pieces) {
    const Tensor found = tensor.parameter ? division.whole(*tensor.parameter, tensor.value.detach()) : tensor.value;
    if (division.is_first())
      whole.emplace_back(name_of(tensor, parameters), found.is_alias_of(tensor.value) ? found.clone() : found);
  }
  return whole;
}

}  // namespace plumb
