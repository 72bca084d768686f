// How concentrated attention is, before training and in a run that has diverged (Dehghani et al. 2023, arXiv
// 2302.05442; Zhai et al. 2023, arXiv 2303.06296).
#include <fmt/format.h>

#include <algorithm>

#include "plumb/analysis/attention_scores.h"
#include "plumb/analysis/watch/activations.h"
#include "plumb/train/alarm.h"
#include "plumb/train/diagnosis.h"

namespace plumb::check {
namespace {

/// A logit difference at which the weights of a query's other keys underflow in float32: e^−88 is below its smallest
/// normal number.
constexpr double kOneKey = 88;

auto profiles_of(Model& model, const std::vector<Batch>& batches) {
  AttentionMeter meter;
  const at::NoGradGuard no_graph;
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    context.watch_scores(meter.observer());
    (void)model.states(batch, context);
  }
  return meter.profiles();
}

/// The sub-layer with the largest logit, of at least one.
template <typename Profiles>
auto with_largest_logit(const Profiles& profiles) {
  return std::max_element(profiles.begin(), profiles.end(),
                          [](const auto& a, const auto& b) { return a.second.largest_logit < b.second.largest_logit; });
}

std::vector<Finding> measure_attention(const PlannedRun& planned) {
  const auto profiles = profiles_of(planned.model, planned.batches);
  if (profiles.empty()) return {};
  const auto lowest = std::min_element(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) {
    return a.second.relative_entropy < b.second.relative_entropy;
  });
  const auto largest = with_largest_logit(profiles);
  const char* advice = "a smaller initialization of queries and keys, or model.qk_norm";
  // Random logits of deviation 1 leave more than 0.7 of the entropy, those of deviation 5 a third.
  Finding entropy{.where = to_string(lowest->first), .value = lowest->second.relative_entropy, .threshold = 0.3};
  entropy.raised = entropy.value < entropy.threshold;
  entropy.text = fmt::format("{} has the lowest entropy of attention, {:.3g} of that of equal weights", entropy.where,
                             entropy.value);
  entropy.advice = advice;
  // e^−50 is no weight for all other keys.
  Finding logit{.where = to_string(largest->first), .value = largest->second.largest_logit, .threshold = 50};
  logit.raised = !(logit.value < logit.threshold);
  logit.text = fmt::format("{} has the largest logit of attention, {:.3g}", logit.where, logit.value);
  logit.advice = advice;
  return {entropy, logit};
}

std::vector<Finding> explain_by_attention(const DivergedRun& diverged) {
  if (!diverged.finite) return {};
  const auto profiles = profiles_of(diverged.run.model, diverged.run.batches);
  if (profiles.empty()) return {};
  const auto lowest = std::min_element(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) {
    return a.second.lowest_head_entropy < b.second.lowest_head_entropy;
  });
  const auto largest = with_largest_logit(profiles);
  const std::string place = to_string(largest->first);
  Finding finding{.where = place, .value = largest->second.largest_logit, .threshold = kOneKey};
  finding.text = fmt::format(
      "the largest attention logit was {:.3g} ({}), and the lowest entropy of a head {:.3g} of its maximum ({})",
      finding.value, place, lowest->second.lowest_head_entropy, to_string(lowest->first));
  const auto [before, step] = diverged.last<ActivationMeasurement>(
      [](const ActivationMeasurement& watched) { return !watched.largest_logit.empty(); });
  if (before) {
    for (const auto& [name, logit] : before->largest_logit) {
      if (name == place) finding.text += fmt::format("; at step {} that logit was {:.3g}", step, logit);
    }
  }
  finding.raised = finding.value > finding.threshold;
  if (finding.raised && diverged.run.model.config().qk_norm == "none")
    finding.advice = "model.qk_norm, which bounds the logits of attention";
  return {finding};
}

[[maybe_unused]] const bool kAttentionAlarm =
    alarms().add("attention", "the entropy of attention and its largest logit",
                 "Zhai et al. 2023, arXiv 2303.06296; Dehghani et al. 2023, arXiv 2302.05442",
                 {.measure = measure_attention, .explain = explain_by_attention});

}  // namespace
}  // namespace plumb::check
