// [watch] "activations": similarity of tokens, entropy and largest logit of attention, by layer. One forward pass.
#include "plumb/analysis/watch/activations.h"

#include "plumb/analysis/attention_scores.h"
#include "plumb/analysis/token_similarity.h"
#include "plumb/run/watch.h"

namespace plumb {

void describe(Fields& field, ActivationMeasurement& measurement) {
  field("token_cosine", measurement.token_cosine);
  field("relative_entropy", measurement.relative_entropy);
  field("lowest_relative_entropy", measurement.lowest_relative_entropy);
  field("largest_logit", measurement.largest_logit);
}

namespace {

class ActivationWatch final : public Watch {
 public:
  [[nodiscard]] Described measure(const WatchedRun& run) override {
    TokenSimilarity similarity;
    AttentionMeter meter;
    for (const Batch& batch : run.batches) {
      ForwardContext context(Pass::measurement);
      context.watch_scores(meter.observer());
      similarity.see(run.model, batch, context);
    }
    ActivationMeasurement found;
    for (const auto& [layer, mean] : similarity.means()) found.token_cosine.emplace_back(to_string(layer), mean);
    for (const auto& [attention, profile] : meter.profiles()) {
      const std::string name = to_string(attention);
      found.relative_entropy.emplace_back(name, profile.relative_entropy);
      found.lowest_relative_entropy.emplace_back(name, profile.lowest_head_entropy);
      found.largest_logit.emplace_back(name, profile.largest_logit);
    }
    return Described(std::move(found));
  }
};

[[maybe_unused]] const bool kActivationsRegistered = watches().add(
    ActivationMeasurement::kWatch,
    "by layer: mean cosine between different tokens of a sequence, of what the layer reads; mean −Σ p·ln p/ln n of the "
    "attention weights p over n keys, over all heads and for the lowest; the largest logit",
    "Noci et al. 2022, arXiv 2206.03126; Zhai et al. 2023, arXiv 2303.06296; Dehghani et al. 2023, arXiv 2302.05442",
    watch_factory<ActivationWatch>());

}  // namespace
}  // namespace plumb
