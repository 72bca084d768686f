#include "plumb/train/step_reading.h"

#include <cmath>
#include <numeric>

#include "plumb/optim/clipping.h"

namespace plumb {

std::vector<Tensor> clipped_by_element(const TrainConfig& config, const Parameters& parameters,
                                       std::vector<Tensor> gradient) {
  if (config.clip_value > 0) gradient = clip_values(gradient, config.clip_value);
  if (config.clip_block > 0) gradient = clip_blocks(parameters, gradient, config.clip_block);
  return gradient;
}

StepReading read_step(const ComputedStep& step, const std::vector<Tensor>* clipped,
                      std::span<const ParameterStep> settings, const std::vector<ops::Number>& square_updates,
                      const Group& group) {
  std::vector<ops::Number> asked = {square_norm(step.gradient, settings),
                                    clipped != nullptr ? square_norm(*clipped, settings) : ops::Number()};
  const std::ptrdiff_t norms = std::ssize(asked);
  asked.insert(asked.end(), step.losses.begin(), step.losses.end());
  asked.insert(asked.end(), step.nlls.begin(), step.nlls.end());
  asked.insert(asked.end(), square_updates.begin(), square_updates.end());
  const std::vector<double> read = ops::read(asked);
  const auto losses = read.begin() + norms, nlls = losses + std::ssize(step.losses);
  const auto updates = nlls + std::ssize(step.nlls);
  const std::vector<double> sums = group.sums(
      {std::accumulate(losses, nlls, 0.0), std::accumulate(nlls, updates, 0.0), static_cast<double>(step.tokens)});
  StepReading reading{sums[0], sums[1], static_cast<int64_t>(sums[2]), std::sqrt(read[0]), 0, {updates, read.end()}};
  reading.clipped_norm = clipped != nullptr ? std::sqrt(read[1]) : reading.gradient_norm;
  return reading;
}

}  // namespace plumb
