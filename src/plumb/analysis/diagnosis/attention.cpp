// Divergence and attention: the largest logit and the lowest entropy (Dehghani et al. 2023, arXiv 2302.05442; Zhai et
// al. 2023, arXiv 2303.06296).
#include <fmt/format.h>

#include "plumb/analysis/attention_scores.h"
#include "plumb/analysis/watch/activations.h"
#include "plumb/run/config.h"
#include "plumb/train/diagnosis.h"

namespace plumb {
namespace {

/// A logit difference at which the weights of a query's other keys underflow in float32: e^−88 is below its smallest
/// normal number.
constexpr double kOneKey = 88;

std::vector<Finding> find_attention(const DivergedRun& diverged) {
  if (!diverged.finite) return {};
  AttentionMeter meter;
  const at::NoGradGuard no_graph;
  for (const Batch& batch : diverged.run.batches) {
    ForwardContext context(Pass::measurement);
    context.watch_scores(meter.observer());
    (void)diverged.run.model.states(batch, context);
  }
  const auto profiles = meter.profiles();
  if (profiles.empty()) return {};
  auto largest = profiles.begin(), lowest = profiles.begin();
  for (auto each = profiles.begin(); each != profiles.end(); ++each) {
    if (each->second.largest_logit > largest->second.largest_logit) largest = each;
    if (each->second.lowest_head_entropy < lowest->second.lowest_head_entropy) lowest = each;
  }
  Finding finding{
      fmt::format("the largest attention logit was {:.3g} ({}), and the lowest entropy of a head {:.3g} of its maximum "
                  "({})",
                  largest->second.largest_logit, to_string(largest->first), lowest->second.lowest_head_entropy,
                  to_string(lowest->first)),
      ""};
  const auto [before, step] = diverged.last<ActivationMeasurement>(
      [](const ActivationMeasurement& watched) { return !watched.largest_logit.empty(); });
  if (before != nullptr) {
    for (const auto& [name, logit] : before->largest_logit) {
      if (name == to_string(largest->first))
        finding.text += fmt::format("; at step {} that logit was {:.3g}", step, logit);
    }
  }
  const bool saturated = largest->second.largest_logit > kOneKey;
  if (saturated && diverged.run.model.config().qk_norm == "none")
    finding.advice = "model.qk_norm, which bounds the logits of attention";
  return {finding};
}

[[maybe_unused]] const bool kAttentionDiagnosed =
    diagnoses().add("attention", "the largest logit and the lowest entropy of attention",
                    "arXiv 2302.05442, arXiv 2303.06296", find_attention);

}  // namespace
}  // namespace plumb
