// [watch] "activations": similarity of tokens, entropy and largest logit of attention, by layer. One forward pass.
#include "plumb/analysis/attention_scores.h"
#include "plumb/analysis/token_similarity.h"
#include "plumb/run/watch.h"

namespace plumb {
namespace {

class ActivationWatch final : public Watch {
 public:
  [[nodiscard]] Json measure(const WatchedRun& run) override {
    TokenSimilarity similarity;
    AttentionMeter meter;
    for (const Batch& batch : run.batches) {
      ForwardContext context(Pass::measurement);
      context.watch_scores(meter.observer());
      similarity.see(run.model, batch, context);
    }
    Json json = Json::object();
    for (const auto& [layer, mean] : similarity.means()) json["token_cosine"][to_string(layer)] = mean;
    for (const auto& [attention, profile] : meter.profiles()) {
      json["relative_entropy"][to_string(attention)] = profile.relative_entropy;
      json["lowest_relative_entropy"][to_string(attention)] = profile.lowest_head_entropy;
      json["largest_logit"][to_string(attention)] = profile.largest_logit;
    }
    return json;
  }
};

[[maybe_unused]] const bool kActivationsRegistered = watches().add(
    "activations",
    "by layer: mean cosine between different tokens of a sequence, of what the layer reads; mean −Σ p·ln p/ln n of the "
    "attention weights p over n keys, over all heads and for the lowest; the largest logit",
    "Noci et al. 2022, arXiv 2206.03126; Zhai et al. 2023, arXiv 2303.06296; Dehghani et al. 2023, arXiv 2302.05442",
    [](const Options&) { return std::make_unique<ActivationWatch>(); });

}  // namespace
}  // namespace plumb
