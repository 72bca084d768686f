// The size of the first update at the planned peak rate, relative to the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plumb/analysis/first_step.h"
#include "plumb/base/quantity.h"
#include "plumb/check/planned_step.h"
#include "plumb/check/thresholds.h"

namespace plumb::check {
namespace {

/// Matrices of one layer, or one matrix outside of layers.
struct Moved {
  std::string place;
  double update = 0, weights = 0;  // sums of squares

  [[nodiscard]] double relative() const { return std::sqrt(update / weights); }
};

/// By place, at the peak rate. Vectors are left out: biases begin at 0.
std::vector<Moved> moved_by_layer(const PlannedRun& planned, const std::vector<Tensor>& update) {
  const std::vector<ParameterSettings> settings = planned_settings(planned);
  const std::vector<Parameter>& all = planned.model.parameters().all();
  std::vector<Moved> moved;
  for (size_t i = 0; i < all.size(); ++i) {
    const double weights = all[i].value.detach().to(at::kDouble).square().sum().item<double>();
    if (all[i].value.dim() < 2 || weights == 0 || never_trained(settings[i], planned)) continue;
    const std::string place = place_of(all[i]);
    const double rate = planned.peak_rate * settings[i].rate_factor;
    auto found = std::find_if(moved.begin(), moved.end(), [&](const Moved& each) { return each.place == place; });
    if (found == moved.end()) found = moved.insert(found, {place});
    found->weights += weights;
    found->update += rate * rate * update[i].to(at::kDouble).square().sum().item<double>();
  }
  return moved;
}

/// Adam moves every element by the rate, so 3e-4 to 3e-3 with usual matrices is 0.2 % to 5 %, and 1e-2 up to 20 %. A
/// step of 40 % replaces what the layer has learned.
Finding too_large(const Moved& most, const PlannedRun& planned) {
  Finding finding{.where = most.place, .value = most.relative(), .threshold = kLargestUpdate};
  finding.raised = !(finding.value < finding.threshold);
  finding.text = fmt::format(
      "a first step at the peak rate of {:.3g} changes {} by {} its norm, more than any other layer", planned.peak_rate,
      most.place, finding.value < 10 ? rounded(100 * finding.value, 3) + "% of" : rounded(finding.value, 3) + " times");
  finding.advice = "a smaller train.learning_rate, or a larger initialization";
  return finding;
}

/// Even if all steps went in one direction, the weights would remain where they were. Below 2⁻⁸, those in bfloat16
/// (train.parameters) would not even reach the next number.
Finding too_small(const Moved& most, const PlannedRun& planned) {
  Finding finding{.where = most.place,
                  .value = most.relative() * static_cast<double>(planned.steps),
                  .threshold = kSmallestUpdates};
  finding.raised = !(finding.value > finding.threshold);
  finding.text = fmt::format("{} steps at the peak rate of {:.3g} change every layer by at most {:.3g}% of its norm",
                             planned.steps, planned.peak_rate, 100 * finding.value);
  if (planned.config.parameters != "float32" && finding.value < 1.0 / 256)
    finding.text += ", less than the distance of neighboring bfloat16 numbers";
  finding.advice =
      clipping_factor(planned) < 0.01 ? "a larger train.clip_norm" : "a larger train.learning_rate, or more steps";
  return finding;
}

std::vector<Finding> measure_updates(const PlannedRun& planned) {
  const TrainConfig& train = planned.config;
  const Parameters& parameters = planned.model.parameters();
  const std::vector<Tensor> update =
      parameters.split(first_update(parameters, clipped_gradient(planned), train.optimizer, train.options));
  const std::vector<Moved> moved = moved_by_layer(planned, update);
  if (moved.empty()) return {};
  const auto most = std::max_element(moved.begin(), moved.end(),
                                     [](const Moved& a, const Moved& b) { return a.relative() < b.relative(); });
  return {too_large(*most, planned), too_small(*most, planned)};
}

[[maybe_unused]] const bool kUpdatesAlarm =
    alarms().add("updates", "the first step's size at the peak rate, relative to the weights", "", {measure_updates});

}  // namespace
}  // namespace plumb::check
