// The coordinate check: how the size of activations, and of their change in training, scales with a model's width,
// depth or batch size (Yang et al. 2022, arXiv 2203.03466, appendix D.1).
#pragma once

#include <string>
#include <vector>

#include "plumb/analysis/scaling_exponent.h"
#include "plumb/base/options.h"
#include "plumb/model/model.h"

namespace plumb {

struct CoordinateOptions {
  std::string optimizer = "adam";
  VariantOptions optimizer_options;
  double learning_rate = 1e-3;  // constant
  double label_smoothing = 0;
  double clip_norm = 0;  // 0: no clipping
};

/// Root mean squares over the elements of one activation.
struct CoordinateSize {
  ActivationPoint point;
  double before = 0;  // of the activation before training
  double after = 0;   // of the activation after the steps
  double change = 0;  // of the difference: what the updates did to it
};

struct CoordinateSizes {
  std::vector<CoordinateSize> activations;  // `stream` of each sub-layer and `result` of each stack, in forward order
  CoordinateSize logits;                    // with the mean over classes subtracted; `point` is unused
};

/// Trains the model with one step on each batch of `steps`, without dropout, weight decay, warm-up or learning-rate
/// decay, and measures a batch before and after. The model keeps the trained parameters.
CoordinateSizes measure_coordinates(Model& model, const std::vector<Batch>& steps, const Batch& measured,
                                    const CoordinateOptions& options);

}  // namespace plumb
