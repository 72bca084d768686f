#include "plumb/divided/divided_state.h"

namespace plumb {

std::vector<StateTensor> state_of(const NamedTensors& values, const Parameters& parameters) {
  std::vector<StateTensor> state;
  for (const auto& [name, value] : values) {
    if (const Parameter* parameter = parameters.find(name)) {
      state.push_back({.parameter = static_cast<size_t>(parameter - parameters.all().data()), .value = value});
    } else {
      state.push_back({.kind = name, .value = value});
    }
  }
  return state;
}

NamedTensors shards_of(const std::vector<StateTensor>& full, const Parameters& parameters,
                       const LayerDivision& division) {
  NamedTensors shards;
  for (const StateTensor& tensor : full) {
    shards.emplace_back(name_of(tensor, parameters),
                        tensor.parameter ? division.shard(*tensor.parameter, tensor.value) : tensor.value);
  }
  return shards;
}

}  // namespace plumb
