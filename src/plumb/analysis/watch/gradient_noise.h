// The watch "gradient_noise": its options and its results.
#pragma once

#include <cstdint>

#include "plumb/base/config.h"

namespace plumb {

/// [watch.gradient_noise]
struct GradientNoiseOptions {
  int64_t batches = 8;
  int64_t examples = 16;
};
void describe(Fields& field, GradientNoiseOptions& options);

/// What the watch measures: a NoiseScale (analysis/noise_scale.h) and its cost.
struct GradientNoiseMeasurement {
  static constexpr const char* kWatch = "gradient_noise";
  double mean_square_norm = 0;
  double square_norm_of_mean = 0;
  double square_gradient = 0;
  double trace = 0;
  double examples = 0;    // the noise scale in examples; NaN if square_gradient is not positive
  double tokens = 0;      // the same in labels
  int64_t gradients = 0;  // computed, one for each mini-batch
};
void describe(Fields& field, GradientNoiseMeasurement& measurement);

}  // namespace plumb
