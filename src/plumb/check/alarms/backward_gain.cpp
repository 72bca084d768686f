// How much of the gradient each part passes back along the stream.
#include "plumb/analysis/backward_gain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/model/kind.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

std::vector<Finding> measure_backward_gain(const PlannedRun& planned) {
  if (kind_of(planned.model.config()).recurrent) return {};
  const BackwardGains gains = measure_backward_gains(planned.model, {planned.batches.back()},
                                                     planned.config.label_smoothing, loss_of(planned.task));
  std::vector<Finding> findings;
  for (StackGains stack : gains.stacks) {
    // No gradient arrives behind a branch that begins at 0 (ReZero's encoder).
    std::erase_if(stack.parts, [](const BackwardGain& part) { return std::isnan(part.gain) && part.gradient == 0; });
    if (stack.parts.empty()) continue;
    const auto less = [](const BackwardGain& a, const BackwardGain& b) { return a.gain < b.gain; };
    const auto [low, high] = std::minmax_element(stack.parts.begin(), stack.parts.end(), less);
    // A part of a trainable model passes back between 0.1 and 10; only the first norm of a stack, above small
    // embeddings, amplifies by the reciprocal of their size, up to 100.
    const auto finding_for = [&](const BackwardGain& part, double threshold, bool raised, const char* which) {
      Finding finding{.raised = raised, .where = to_string(part.point.id), .value = part.gain, .threshold = threshold};
      finding.text = fmt::format("{} multiplies the gradient by {:.3g}, the {} factor in the {}", finding.where,
                                 part.gain, which, to_string(stack.stack));
      finding.advice = raised ? "another residual scheme, norm or initialization of this part" : "";
      return finding;
    };
    findings.push_back(finding_for(*low, 0.01, !(low->gain > 0.01), "smallest"));
    findings.push_back(finding_for(*high, 200, !(high->gain < 200), "largest"));
  }
  return findings;
}

[[maybe_unused]] const bool kBackwardGainAlarm =
    alarms().add("backward_gain", "the factor by which each part multiplies the gradient that it passes back", "",
                 {measure_backward_gain, true});

}  // namespace
}  // namespace plumb::check
