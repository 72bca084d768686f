// A model to measure, of which this process may have a part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/nn/layer_division.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// `division` is among the ranks of a group that compute the layers together; of one, nothing is divided.
struct DividedModel {
  std::unique_ptr<Model> model;
  LayerDivision division;
};

/// Given weights, named by where they come from.
struct GivenWeights {
  const NamedTensors& tensors;
  std::string origin;
};

/// A model with these weights or, without, initialized from a seed. On processors, no rank then has all of it, unless
/// its initialization profiles or constrains it. Throws Error if the weights do not fit, or it cannot be divided so.
DividedModel make_divided_model(const ModelConfig& config, at::ScalarType type, const Group& layers,
                                const std::optional<GivenWeights>& weights, uint64_t seed);

}  // namespace plumb
