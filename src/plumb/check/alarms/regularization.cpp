// Dropout and label smoothing that leave little to learn from.
#include <fmt/format.h>

#include "plumb/check/alarm.h"

namespace plumb::check {
namespace {

std::vector<Reason> look_at_regularization(const Evidence& evidence) {
  // Usual: 0 to 0.3, at most 0.5 (dropout), and 0 to 0.2 (label smoothing). Above a half, most of what is learned from
  // is noise.
  constexpr double kMost = 0.5;
  const auto reason_of = [](const char* key, double value, const char* what) {
    Reason reason{.raised = value > kMost, .place = key, .value = value, .threshold = kMost};
    reason.text = fmt::format("{} = {} {}", key, value, what);
    reason.advice = fmt::format("{} = 0.1", key);
    return reason;
  };
  return {
      reason_of("model.dropout", evidence.model.config().dropout, "is the share of activations that each step removes"),
      reason_of("train.label_smoothing", evidence.config.label_smoothing,
                "is the share of the loss that asks for equal probabilities")};
}

[[maybe_unused]] const bool kRegularizationLookedAt =
    alarms().add("regularization", "dropout and label smoothing",
                 "Srivastava et al. 2014; Szegedy et al. 2016, arXiv 1512.00567", {look_at_regularization});

}  // namespace
}  // namespace plumb::check
