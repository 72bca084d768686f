// The numbers of a step that decide about its update, read from the device at once.
#pragma once

#include <span>
#include <vector>

#include "plumb/optim/optimizer.h"
#include "plumb/train/step_computation.h"

namespace plumb {

/// Whether gradients are clipped by value or by block, beside the clipping by norm.
[[nodiscard]] inline bool clips_elements(const TrainConfig& config) {
  return config.clip_value > 0 || config.clip_block > 0;
}

/// The gradient clipped by value, and that by block; by norm, the optimizer scales it (clip_scale).
std::vector<Tensor> clipped_by_element(const TrainConfig& config, const Parameters& parameters,
                                       std::vector<Tensor> gradient);

/// Sums over all processes; the norms are those of the parameters that are not frozen.
struct StepReading {
  double loss = 0;           // mean over labels, with label smoothing
  double nll = 0;            // summed over labels
  int64_t tokens = 0;        // see Batch::tokens
  double gradient_norm = 0;  // before clipping
  double clipped_norm = 0;   // after clipping by element, before that by norm
  std::vector<double> square_updates;
};

/// The one place in a step that waits for the device. `clipped`: the gradient after clipping by element, or null if
/// that is the gradient itself. `square_updates`: numbers of the step before, which are read along.
StepReading read_step(const ComputedStep& step, const std::vector<Tensor>* clipped,
                      std::span<const ParameterStep> settings, const std::vector<ops::Number>& square_updates,
                      const Group& group);

}  // namespace plumb
