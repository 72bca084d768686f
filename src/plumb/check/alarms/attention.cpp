// How concentrated attention is before training.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/analysis/attention_scores.h"
#include "plumb/check/alarm.h"

namespace plumb::check {
namespace {

std::vector<Reason> look_at_attention(const Evidence& evidence) {
  AttentionMeter meter;
  const at::NoGradGuard no_graph;
  for (const Batch& batch : evidence.batches) {
    ForwardContext context(Pass::measurement);
    context.watch_scores(meter.observer());
    (void)evidence.model.states(batch, context);
  }
  const auto profiles = meter.profiles();
  if (profiles.empty()) return {};
  const auto lowest = std::min_element(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) {
    return a.second.relative_entropy < b.second.relative_entropy;
  });
  const auto largest = std::max_element(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) {
    return a.second.largest_logit < b.second.largest_logit;
  });
  const char* advice = "a smaller initialization of queries and keys, or model.qk_norm";
  // Random logits of deviation 1 leave more than 0.7 of the entropy, those of deviation 5 a third.
  Reason entropy{.place = to_string(lowest->first), .value = lowest->second.relative_entropy, .threshold = 0.3};
  entropy.raised = entropy.value < entropy.threshold;
  entropy.text = fmt::format("{} has the lowest entropy of attention, {:.3g} of that of equal weights", entropy.place,
                             entropy.value);
  entropy.advice = advice;
  // e^−50 is no weight for all other keys.
  Reason logit{.place = to_string(largest->first), .value = largest->second.largest_logit, .threshold = 50};
  logit.raised = !(logit.value < logit.threshold);
  logit.text = fmt::format("{} has the largest logit of attention, {:.3g}", logit.place, logit.value);
  logit.advice = advice;
  return {entropy, logit};
}

[[maybe_unused]] const bool kAttentionLookedAt =
    alarms().add("attention", "the entropy of attention and its largest logit",
                 "Zhai et al. 2023, arXiv 2303.06296; Dehghani et al. 2023, arXiv 2302.05442", {look_at_attention});

}  // namespace
}  // namespace plumb::check
