// How much of the gradient reaches the first layer.
#include "plumb/check/gradient.h"

#include "plumb/base/quantity.h"
#include "plumb/check/alarm.h"

namespace plumb::check {
namespace {

std::vector<Reason> look_at_gradient_at_input(const Evidence& evidence) {
  const std::optional<double> share = gradient_at_input(evidence.model.parameters(), evidence.gradient);
  if (!share) return {};
  Reason reason{.value = *share, .threshold = kGradientAtInput};
  // Where it is exactly 0, it is blocked rather than lost: ReZero begins so.
  reason.raised = *share > 0 && *share < reason.threshold;
  reason.text = rounded(100 * *share, 2) + "% of the last layer's gradient reaches the first";
  reason.advice = "a lower rate, a warm-up, or a residual scheme through which gradients pass";
  return {reason};
}

[[maybe_unused]] const bool kGradientAtInputLookedAt =
    alarms().add("gradient_at_input", "the share of the last layer's gradient that reaches the first", "",
                 {look_at_gradient_at_input, true});

}  // namespace
}  // namespace plumb::check
