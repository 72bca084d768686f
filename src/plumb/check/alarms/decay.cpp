// Weight decay: on what, and how fast weights would vanish without gradients.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/check/planned_step.h"

namespace plumb::check {
namespace {

/// A decay that is multiplied by the rate shrinks a weight by η·λ in each step at the peak.
Finding fastest_decay(const PlannedRun& planned, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = planned.model.parameters().all();
  Finding finding{.threshold = 0.01};  // the weights remember the last 100 gradients; usual: 1e-4 and less
  for (size_t i = 0; i < settings.size(); ++i) {
    if (never_trained(settings[i], planned)) continue;
    const double shrinks = planned.peak_rate * settings[i].rate_factor * settings[i].weight_decay;
    if (shrinks <= finding.value) continue;
    finding.value = shrinks;
    finding.where = all[i].name;
  }
  const double folds = finding.value * static_cast<double>(planned.steps);
  finding.raised = finding.value >= finding.threshold && folds > 1;
  finding.text = fmt::format(
      "weight decay at the peak rate shrinks weights by {:.3g}% per step, by a factor of e^{:.3g} in {} steps",
      100 * finding.value, folds, planned.steps);
  finding.advice = "a smaller train.weight_decay";
  return finding;
}

/// Norms' gains are 1 for a reason: shrunk, they silence a layer, and nothing makes up for it.
Finding decay_of_vectors(const PlannedRun& planned, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = planned.model.parameters().all();
  Finding finding{.threshold = 0.1};  // a tenth smaller, without gradients
  for (size_t i = 0; i < settings.size(); ++i) {
    if (all[i].value.dim() >= 2 || never_trained(settings[i], planned)) continue;
    const double folds =
        planned.peak_rate * settings[i].rate_factor * settings[i].weight_decay * static_cast<double>(planned.steps);
    if (folds <= finding.value) continue;
    finding.value = folds;
    finding.where = all[i].name;
  }
  finding.raised = finding.value > finding.threshold;
  finding.text = finding.where.empty()
                     ? "norms and biases are not decayed"
                     : fmt::format("weight decay shrinks {}, a norm, bias or scalar, by up to a factor of e^{:.3g}",
                                   finding.where, finding.value);
  finding.advice = "weight_decay = 0 in the group of [[train.groups]] that contains norms and biases";
  return finding;
}

std::vector<Finding> measure_decay(const PlannedRun& planned) {
  const std::vector<ParameterSettings> settings = planned_settings(planned);
  if (std::all_of(settings.begin(), settings.end(),
                  [](const ParameterSettings& each) { return each.weight_decay == 0; }))
    return {};
  return {fastest_decay(planned, settings), decay_of_vectors(planned, settings)};
}

[[maybe_unused]] const bool kDecayAlarm = alarms().add("decay", "what weight decay shrinks, and how fast",
                                                       "Loshchilov & Hutter 2019, arXiv 1711.05101", {measure_decay});

}  // namespace
}  // namespace plumb::check
