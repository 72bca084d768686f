// Whether a decoder sees tokens that it is to predict.
#include <fmt/format.h>

#include <optional>

#include "plumb/check/alarm.h"
#include "plumb/model/kind.h"

namespace plumb::check {
namespace {

/// The first sequence of at least three tokens, alone.
std::optional<Batch> one_sequence(const Evidence& evidence) {
  for (const int64_t example : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    if (example >= evidence.train.size()) break;
    Batch batch = evidence.train.batch({&example, 1});
    if (batch.target_layout.sequences() == 1 && std::ssize(batch.target_input) > 2) return batch;
  }
  return std::nullopt;
}

std::vector<Reason> look_at_causality(const Evidence& evidence) {
  const ModelConfig& config = evidence.model.config();
  if (!kind_of(config).reads_target || config.labels > 0 || evidence.train.stream()) return {};
  const std::optional<Batch> batch = one_sequence(evidence);
  if (!batch) return {};
  Batch changed = *batch;
  changed.target_input.back() = (changed.target_input.back() + 1) % config.target_vocabulary;
  const at::NoGradGuard no_graph;
  ForwardContext first, second;
  const int64_t earlier = std::ssize(batch->target_input) - 1;
  const Tensor before = evidence.model.states(*batch, first).narrow(0, 0, earlier);
  const Tensor after = evidence.model.states(changed, second).narrow(0, 0, earlier);
  Reason reason{.place = "decoder", .threshold = 1e-4};  // float32 has 1e-7; kernels may add in another order
  reason.value = ((after - before).abs().max() / before.abs().max()).item<double>();
  reason.raised = !(reason.value <= reason.threshold);
  reason.text = fmt::format("another last token changes the states of the tokens before it by {:.2g} of their size",
                            reason.value);
  reason.advice = "a causal mask: the decoder sees the tokens that it is to predict, so its loss means nothing";
  return {reason};
}

[[maybe_unused]] const bool kCausalityLookedAt =
    alarms().add("causality", "whether a token changes the states of those before it",
                 "Vaswani et al. 2017, arXiv 1706.03762", {look_at_causality});

}  // namespace
}  // namespace plumb::check
