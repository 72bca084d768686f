// How much of the gradient reaches the first layer, before training, along it and in a run that has diverged.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/base/quantity.h"
#include "plumb/check/gradient.h"
#include "plumb/check/verdict.h"
#include "plumb/nn/layer_id.h"
#include "plumb/train/alarm.h"
#include "plumb/train/diagnosis.h"

namespace plumb::check {
namespace {

std::vector<Finding> measure_gradient_at_input(const PlannedRun& planned) {
  const std::optional<double> share = gradient_at_input(planned.model.parameters(), planned.gradient);
  if (!share) return {};
  Finding finding{.value = *share, .threshold = kGradientAtInput};
  // Where it is exactly 0, it is blocked rather than lost: ReZero begins so.
  finding.raised = *share > 0 && *share < finding.threshold;
  finding.text = rounded(100 * *share, 2) + "% of the last layer's gradient reaches the first";
  finding.advice = "a lower rate, a warm-up, or a residual scheme through which gradients pass";
  return {finding};
}

/// The gradient of the step that was not taken.
std::vector<Finding> compare_gradients(const DivergedRun& diverged) {
  std::vector<Finding> findings;
  const std::map<LayerId, double> squares = gradient_by_layer(diverged.run.model.parameters(), diverged.gradients);
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    std::vector<std::pair<LayerId, double>> norms;
    for (const auto& [id, square] : squares) {
      if (id.stack == stack) norms.emplace_back(id, std::sqrt(square));
    }
    if (norms.size() < 2 || !std::isfinite(norms.front().second) || !std::isfinite(norms.back().second)) continue;
    findings.push_back(
        {.text = fmt::format("the gradient's norm was {:.3g} in {} and {:.3g} in {}", norms.front().second,
                             to_string(norms.front().first), norms.back().second, to_string(norms.back().first))});
  }
  return findings;
}

[[maybe_unused]] const bool kGradientAtInputAlarm =
    alarms().add("gradient_at_input", "the share of the last layer's gradient that reaches the first", "",
                 {.measure = measure_gradient_at_input, .along_training = true, .explain = compare_gradients});

}  // namespace
}  // namespace plumb::check
