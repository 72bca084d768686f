// The size of the first update at the planned peak rate, relative to the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plumb/analysis/first_step.h"
#include "plumb/base/quantity.h"
#include "plumb/check/planned_step.h"

namespace plumb::check {
namespace {

/// Matrices of one layer, or one matrix outside of layers.
struct Moved {
  std::string place;
  double update = 0, weights = 0;  // sums of squares

  [[nodiscard]] double relative() const { return std::sqrt(update / weights); }
};

/// By place, at the peak rate. Vectors are left out: biases begin at 0.
std::vector<Moved> moved_by_layer(const Evidence& evidence, const std::vector<Tensor>& update) {
  const std::vector<ParameterSettings> settings = planned_settings(evidence);
  const std::vector<Parameter>& all = evidence.model.parameters().all();
  std::vector<Moved> moved;
  for (size_t i = 0; i < all.size(); ++i) {
    const double weights = all[i].value.detach().to(at::kDouble).square().sum().item<double>();
    if (all[i].value.dim() < 2 || weights == 0 || never_trained(settings[i], evidence)) continue;
    const std::string place = place_of(all[i]);
    const double rate = evidence.peak_rate * settings[i].rate_factor;
    auto found = std::find_if(moved.begin(), moved.end(), [&](const Moved& each) { return each.place == place; });
    if (found == moved.end()) found = moved.insert(found, {place});
    found->weights += weights;
    found->update += rate * rate * update[i].to(at::kDouble).square().sum().item<double>();
  }
  return moved;
}

/// Adam moves every element by the rate, so 3e-4 to 3e-3 with usual matrices is 0.2 % to 5 %, and 1e-2 up to 20 %. A
/// step of 40 % replaces what the layer has learned.
Reason too_large(const Moved& most, const Evidence& evidence) {
  Reason reason{.place = most.place, .value = most.relative(), .threshold = 0.4};
  reason.raised = !(reason.value < reason.threshold);
  reason.text =
      fmt::format("a first step at the peak rate of {:.3g} changes {} by {} its norm, more than any other layer",
                  evidence.peak_rate, most.place,
                  reason.value < 10 ? rounded(100 * reason.value, 3) + "% of" : rounded(reason.value, 3) + " times");
  reason.advice = "a smaller train.learning_rate, or a larger initialization";
  return reason;
}

/// Even if all steps went in one direction, the weights would remain where they were. Below 2⁻⁸, those in bfloat16
/// (train.parameters) would not even reach the next number.
Reason too_small(const Moved& most, const Evidence& evidence) {
  Reason reason{.place = most.place, .value = most.relative() * static_cast<double>(evidence.steps), .threshold = 0.01};
  reason.raised = !(reason.value > reason.threshold);
  reason.text = fmt::format("{} steps at the peak rate of {:.3g} change every layer by at most {:.3g}% of its norm",
                            evidence.steps, evidence.peak_rate, 100 * reason.value);
  if (evidence.config.parameters != "float32" && reason.value < 1.0 / 256)
    reason.text += ", less than the distance of neighboring bfloat16 numbers";
  reason.advice =
      clipping_factor(evidence) < 0.01 ? "a larger train.clip_norm" : "a larger train.learning_rate, or more steps";
  return reason;
}

std::vector<Reason> look_at_updates(const Evidence& evidence) {
  const TrainConfig& train = evidence.config;
  const Parameters& parameters = evidence.model.parameters();
  const std::vector<Tensor> update =
      parameters.split(first_update(parameters, clipped_gradient(evidence), train.optimizer, train.options));
  const std::vector<Moved> moved = moved_by_layer(evidence, update);
  if (moved.empty()) return {};
  const auto most = std::max_element(moved.begin(), moved.end(),
                                     [](const Moved& a, const Moved& b) { return a.relative() < b.relative(); });
  return {too_large(*most, evidence), too_small(*most, evidence)};
}

[[maybe_unused]] const bool kUpdatesLookedAt =
    alarms().add("updates", "the first step's size at the peak rate, relative to the weights", "", {look_at_updates});

}  // namespace
}  // namespace plumb::check
