// How far a step moves the parameters, relative to their size.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plumb/nn/parameters.h"

namespace plumb {

/// A layer ("encoder.layers.0"), or a single parameter outside the layers, under its name.
struct UpdateRatio {
  std::string name;
  double update = 0;  // ‖Δθ‖, over all parameters of the group
  double weight = 0;  // ‖θ‖ before the step

  /// ‖Δθ‖/‖θ‖; NaN if both are 0.
  [[nodiscard]] double ratio() const { return update / weight; }
};

/// ‖x‖ of the pieces of each layer and of each piece outside the layers, in the order of the model, then "total".
/// pieces: one tensor per parameter, such as gradients; sums in float64.
std::vector<std::pair<std::string, double>> norms_by_layer(const Parameters& parameters,
                                                           std::span<const Tensor> pieces);

/// The ratios of all layers and of the parameters outside the layers, in the order of the model, then "total", all
/// parameters. before, after: (parameters.count()), sums in float64.
std::vector<UpdateRatio> update_ratios(const Parameters& parameters, const Tensor& before, const Tensor& after);

}  // namespace plumb
