// The numbers that decide about a step's update, read from the device all at once.
#pragma once

#include <span>
#include <vector>

#include "plumb/divided/mesh.h"
#include "plumb/divided/parameter_shards.h"
#include "plumb/nn/layer_division.h"
#include "plumb/optim/optimizer.h"
#include "plumb/train/step_computation.h"

namespace plumb {

/// Whether gradients are clipped by value or by block, in addition to clipping by norm.
[[nodiscard]] inline bool clips_elements(const TrainConfig& config) {
  return config.clip_value > 0 || config.clip_block > 0;
}

/// The gradient clipped by value, then by block. The optimizer clips by norm (clip_scale).
std::vector<Tensor> clipped_by_element(const TrainConfig& config, const Parameters& parameters,
                                       std::vector<Tensor> gradient);

/// Over all processes. Norms leave out frozen parameters.
struct StepReading {
  double loss = 0;           // mean over labels, with label smoothing
  double nll = 0;            // summed over labels
  int64_t tokens = 0;        // see Batch::tokens
  double gradient_norm = 0;  // before clipping
  double clipped_norm = 0;   // after clipping by value and block, before clipping by norm
  std::vector<double> square_updates;
};

/// The only place in a step that waits for the device. `clipped`: the gradient after clipping by value and block, or
/// null if it is not clipped so. `square_updates`: numbers of the previous step to read at the same time; they are
/// summed over the processes that divide the model. `division`: null if every process has the whole model; `shards`:
/// null if every process has the whole gradient.
StepReading read_step(const ComputedStep& step, const std::vector<Tensor>* clipped,
                      std::span<const ParameterStep> settings, const std::vector<ops::DeviceScalar>& square_updates,
                      const Mesh& mesh, const LayerDivision* division, const ParameterShards* shards);

/// Estimates of updates (train/update_norms.h), summed over the processes that divide the model or cut its parameters.
std::vector<double> sums_of_updates(const std::vector<double>& own, const Mesh& mesh, const ParameterShards* shards);

}  // namespace plumb
