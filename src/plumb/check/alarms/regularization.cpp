// Dropout and label smoothing that leave little to learn from.
#include <fmt/format.h>

#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

std::vector<Finding> measure_regularization(const PlannedRun& planned) {
  // Usual: 0 to 0.3, at most 0.5 (dropout), and 0 to 0.2 (label smoothing). Above a half, most of what is learned from
  // is noise.
  constexpr double kMost = 0.5;
  const auto finding_of = [](const char* key, double value, const char* what) {
    Finding finding{.raised = value > kMost, .where = key, .value = value, .threshold = kMost};
    finding.text = fmt::format("{} = {} {}", key, value, what);
    finding.advice = fmt::format("{} = 0.1", key);
    return finding;
  };
  return {
      finding_of("model.dropout", planned.model.config().dropout, "is the share of activations that each step removes"),
      finding_of("train.label_smoothing", planned.config.label_smoothing,
                 "is the share of the loss that asks for equal probabilities")};
}

[[maybe_unused]] const bool kRegularizationAlarm =
    alarms().add("regularization", "dropout and label smoothing",
                 "Srivastava et al. 2014; Szegedy et al. 2016, arXiv 1512.00567", {measure_regularization});

}  // namespace
}  // namespace plumb::check
