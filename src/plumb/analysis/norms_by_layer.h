// The size of gradients, weights and updates in each layer.
#pragma once

#include <span>

#include "plumb/base/config.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// ‖x‖ of each layer under its name ("encoder.layers.0") and of each parameter outside the layers, in the order of the
/// model; and of all parameters together.
struct NormsByLayer {
  NamedNumbers each;
  double total = 0;
};

/// pieces: one tensor per parameter, such as gradients; sums in float64.
NormsByLayer norms_by_layer(const Parameters& parameters, std::span<const Tensor> pieces);

}  // namespace plumb
