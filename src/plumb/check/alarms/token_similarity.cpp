// Whether the tokens of a sequence can still be told apart.
#include "plumb/analysis/token_similarity.h"

#include <fmt/format.h>

#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

std::vector<Finding> measure_token_similarity(const PlannedRun& planned) {
  TokenSimilarity similarity;
  for (const Batch& batch : planned.batches) {
    ForwardContext context(Pass::measurement);
    similarity.see(planned.model, batch, context);
  }
  // Equal but for a twentieth of their length. At d 64, an encoder of 12 layers of Post-LN and stacks of 24 layers of
  // HybridNorm, which are above it, learned nothing but the labels' frequencies in 300 steps at a rate of 1e-3.
  Finding finding{.value = -1, .threshold = 0.999};
  for (const auto& [layer, mean] : similarity.means()) {
    // Of the stacks' results: a scheme may add what its layers have lost (ResiDual). NaN without pairs.
    if (layer.layer || !(mean > finding.value)) continue;
    finding.value = mean;
    finding.where = to_string(layer);
  }
  if (finding.where.empty()) return {};
  finding.raised = finding.value > finding.threshold;
  finding.text = fmt::format("the mean cosine of different tokens of a sequence is {:.5f} in the result of the {}",
                             finding.value, finding.where);
  // Attention adds the mean of a sequence's tokens, and the more of it, the larger its values are drawn.
  if (planned.random && planned.model.config().initialization != "small-init")
    finding.advice = "smaller values (model.initialization = \"small-init\"), ";
  finding.advice += "larger embeddings, fewer layers, or a residual scheme that keeps what was read";
  return {finding};
}

[[maybe_unused]] const bool kTokenSimilarityAlarm =
    alarms().add("token_similarity", "the mean cosine of different tokens",
                 "Dong et al. 2021, arXiv 2103.03404; Noci et al. 2022, arXiv 2206.03126", {measure_token_similarity});

}  // namespace
}  // namespace plumb::check
