// Weight decay: on what, and how fast weights would vanish without gradients.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/check/planned_step.h"

namespace plumb::check {
namespace {

/// A decay that is multiplied by the rate shrinks a weight by η·λ in each step at the peak.
Reason fastest_decay(const Evidence& evidence, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = evidence.model.parameters().all();
  Reason reason{.threshold = 0.01};  // the weights remember the last 100 gradients; usual: 1e-4 and less
  for (size_t i = 0; i < settings.size(); ++i) {
    if (never_trained(settings[i], evidence)) continue;
    const double shrinks = evidence.peak_rate * settings[i].rate_factor * settings[i].weight_decay;
    if (shrinks <= reason.value) continue;
    reason.value = shrinks;
    reason.place = all[i].name;
  }
  const double folds = reason.value * static_cast<double>(evidence.steps);
  reason.raised = reason.value >= reason.threshold && folds > 1;
  reason.text = fmt::format(
      "weight decay at the peak rate shrinks weights by {:.3g}% per step, by a factor of e^{:.3g} in {} steps",
      100 * reason.value, folds, evidence.steps);
  reason.advice = "a smaller train.weight_decay";
  return reason;
}

/// Norms' gains are 1 for a reason: shrunk, they silence a layer, and nothing makes up for it.
Reason decay_of_vectors(const Evidence& evidence, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = evidence.model.parameters().all();
  Reason reason{.threshold = 0.1};  // a tenth smaller, without gradients
  for (size_t i = 0; i < settings.size(); ++i) {
    if (all[i].value.dim() >= 2 || never_trained(settings[i], evidence)) continue;
    const double folds =
        evidence.peak_rate * settings[i].rate_factor * settings[i].weight_decay * static_cast<double>(evidence.steps);
    if (folds <= reason.value) continue;
    reason.value = folds;
    reason.place = all[i].name;
  }
  reason.raised = reason.value > reason.threshold;
  reason.text = reason.place.empty()
                    ? "norms and biases are not decayed"
                    : fmt::format("weight decay shrinks {}, a norm, bias or scalar, by up to a factor of e^{:.3g}",
                                  reason.place, reason.value);
  reason.advice = "weight_decay = 0 in the group of [[train.groups]] that contains norms and biases";
  return reason;
}

std::vector<Reason> look_at_decay(const Evidence& evidence) {
  const std::vector<ParameterSettings> settings = planned_settings(evidence);
  if (std::all_of(settings.begin(), settings.end(),
                  [](const ParameterSettings& each) { return each.weight_decay == 0; }))
    return {};
  return {fastest_decay(evidence, settings), decay_of_vectors(evidence, settings)};
}

[[maybe_unused]] const bool kDecayLookedAt = alarms().add(
    "decay", "what weight decay shrinks, and how fast", "Loshchilov & Hutter 2019, arXiv 1711.05101", {look_at_decay});

}  // namespace
}  // namespace plumb::check
