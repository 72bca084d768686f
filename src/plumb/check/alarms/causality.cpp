// Whether a decoder sees tokens that it is to predict.
#include <fmt/format.h>

#include <optional>

#include "plumb/check/thresholds.h"
#include "plumb/model/kind.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

/// The first sequence of at least three tokens, alone.
std::optional<Batch> one_sequence(const PlannedRun& planned) {
  for (const int64_t example : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    if (example >= planned.train.size()) break;
    Batch batch = planned.train.batch({&example, 1});
    if (batch.target_layout.sequences() == 1 && std::ssize(batch.target_input) > 2) return batch;
  }
  return std::nullopt;
}

std::vector<Finding> measure_causality(const PlannedRun& planned) {
  const ModelConfig& config = planned.model.config();
  if (!kind_of(config).reads_target || config.labels > 0 || planned.train.stream()) return {};
  const std::optional<Batch> batch = one_sequence(planned);
  if (!batch) return {};
  Batch changed = *batch;
  changed.target_input.back() = (changed.target_input.back() + 1) % config.target_vocabulary;
  const at::NoGradGuard no_graph;
  ForwardContext first, second;
  const int64_t earlier = std::ssize(batch->target_input) - 1;
  const Tensor before = planned.model.states(*batch, first).narrow(0, 0, earlier);
  const Tensor after = planned.model.states(changed, second).narrow(0, 0, earlier);
  Finding finding{.where = "decoder", .threshold = kCausality};
  finding.value = ((after - before).abs().max() / before.abs().max()).item<double>();
  finding.raised = !(finding.value <= finding.threshold);
  finding.text = fmt::format("another last token changes the states of the tokens before it by {:.2g} of their size",
                             finding.value);
  finding.advice = "a causal mask: the decoder sees the tokens that it is to predict, so its loss means nothing";
  return {finding};
}

[[maybe_unused]] const bool kCausalityAlarm =
    alarms().add("causality", "whether a token changes the states of those before it",
                 "Vaswani et al. 2017, arXiv 1706.03762", {measure_causality});

}  // namespace
}  // namespace plumb::check
