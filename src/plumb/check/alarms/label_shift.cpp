// Whether each label is the next token.
#include <fmt/format.h>

#include <array>

#include "plumb/model/kind.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

constexpr std::array<int64_t, 4> kShifts = {-1, 0, 1, 2};

/// The share of labels i with labels[i] = input[i + shift] in the same sequence, over those that have such an input.
double share_of_matches(const std::vector<Batch>& batches, int64_t shift) {
  int64_t equal = 0, all = 0;
  for (const Batch& batch : batches) {
    const Ragged& layout = batch.target_layout;
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      for (int64_t i = layout.begin(s); i < layout.begin(s + 1); ++i) {
        if (i + shift < layout.begin(s) || i + shift >= layout.begin(s + 1)) continue;
        equal += batch.labels[static_cast<size_t>(i)] == batch.target_input[static_cast<size_t>(i + shift)] ? 1 : 0;
        ++all;
      }
    }
  }
  return all > 0 ? static_cast<double>(equal) / static_cast<double>(all) : 1;
}

std::vector<Finding> measure_label_shift(const PlannedRun& planned) {
  const ModelConfig& config = planned.model.config();
  if (!kind_of(config).reads_target || config.labels > 0) return {};
  for (const Batch& batch : planned.batches) {
    if (batch.labels.size() != batch.target_input.size()) return {};
  }
  int64_t best = 1;
  std::array<double, kShifts.size()> shares{};
  for (size_t i = 0; i < kShifts.size(); ++i) {
    shares[i] = share_of_matches(planned.batches, kShifts[i]);
    if (shares[i] > share_of_matches(planned.batches, best)) best = kShifts[i];
  }
  Finding finding{.value = shares[2], .threshold = 0.99};  // exactly 1, unless labels are disturbed on purpose
  finding.raised = finding.value < finding.threshold;
  finding.text = fmt::format("{:.3g}% of the labels are the next token", 100 * finding.value);
  if (finding.raised && best != 1) {
    finding.text +=
        fmt::format("; {:.3g}% are the token at distance {}{}", 100 * share_of_matches(planned.batches, best), best,
                    best < 1 ? ", which the model has already read" : "");
  }
  finding.advice = "labels that are the input shifted by one token";
  return {finding};
}

[[maybe_unused]] const bool kLabelShiftAlarm =
    alarms().add("label_shift", "whether each label is the next token", "", {measure_label_shift});

}  // namespace
}  // namespace plumb::check
