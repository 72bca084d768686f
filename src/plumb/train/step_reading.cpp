#include "plumb/train/step_reading.h"

#include <cmath>
#include <numeric>

#include "plumb/optim/clipping.h"

namespace plumb {
namespace {

/// The square of the norm of a gradient, without frozen parameters, in two parts, both of this stage: what has to be
/// summed over the processes that divide each layer, and what all of them have.
struct SquareNorm {
  ops::DeviceScalar own{}, common{};
};

/// `division`: null if every process has the whole model.
SquareNorm square_norm_in_parts(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings,
                                const LayerDivision* division) {
  if (division == nullptr) return {.common = square_norm(gradients, settings)};
  const auto of = [&](bool cut) {
    std::vector<ParameterStep> some(settings.begin(), settings.end());
    for (size_t i = 0; i < some.size(); ++i)
      some[i].frozen = some[i].frozen || division->is_divided(i) != cut || !division->counts(i);
    return square_norm(gradients, some);
  };
  return {of(true), of(false)};
}

}  // namespace

std::vector<Tensor> clipped_by_element(const TrainConfig& config, const Parameters& parameters,
                                       std::vector<Tensor> gradient) {
  if (config.clip_value > 0) gradient = clip_values(gradient, config.clip_value);
  if (config.clip_block > 0) gradient = clip_blocks(parameters, gradient, config.clip_block);
  return gradient;
}

StepReading read_step(const ComputedStep& step, const std::vector<Tensor>* clipped,
                      std::span<const ParameterStep> settings, const std::vector<ops::DeviceScalar>& square_updates,
                      const Mesh& mesh, const LayerDivision* division, const ParameterShards* shards) {
  const SquareNorm before = square_norm_in_parts(step.gradient, settings, division);
  const SquareNorm after = clipped != nullptr ? square_norm_in_parts(*clipped, settings, division) : before;
  std::vector<ops::DeviceScalar> asked = {before.common, after.common, before.own, after.own};
  asked.insert(asked.end(), square_updates.begin(), square_updates.end());
  const std::ptrdiff_t norms = std::ssize(asked);
  asked.insert(asked.end(), step.losses.begin(), step.losses.end());
  asked.insert(asked.end(), step.nlls.begin(), step.nlls.end());
  const std::vector<double> read = ops::read(asked);
  const auto losses = read.begin() + norms, nlls = losses + std::ssize(step.losses);
  std::vector<double> sums = {std::accumulate(losses, nlls, 0.0), std::accumulate(nlls, read.end(), 0.0),
                              static_cast<double>(step.tokens)};
  constexpr std::ptrdiff_t kNorms = 4;
  std::vector<double> squares(read.begin(), read.begin() + kNorms);
  if (shards != nullptr) sums.insert(sums.end(), squares.begin(), squares.end());  // of shards
  sums = mesh.data.sums(sums);
  if (shards != nullptr) squares.assign(sums.begin() + 3, sums.end());
  const std::vector<double> own = mesh.tensor.sums({squares[2], squares[3]});
  // Losses are those of the last stage.
  sums = mesh.pipeline.sums({sums[0], sums[1], sums[2], squares[0] + own[0], squares[1] + own[1]});
  return {sums[0],
          sums[1],
          static_cast<int64_t>(sums[2]),
          std::sqrt(sums[3]),
          std::sqrt(sums[4]),
          sums_of_updates({read.begin() + kNorms, losses}, mesh, shards)};
}

std::vector<double> sums_of_updates(const std::vector<double>& own, const Mesh& mesh, const ParameterShards* shards) {
  if (own.empty()) return own;
  const bool cut = shards != nullptr && shards->shards_parameters();
  return mesh.pipeline.sums(mesh.tensor.sums(cut ? mesh.data.sums(own) : own));
}

}  // namespace plumb
