// The loss before training. Logits near 0 give ln(classes).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/quantity.h"
#include "plumb/check/thresholds.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

std::vector<Finding> measure_initial_loss(const PlannedRun& planned) {
  const auto& [frequencies, uniform, first] = planned.baselines;
  // Random logits of variance 1 add half a nat; 2 leaves room. A matrix shared with the embeddings, of rows of length
  // 1, gives the token that was just read a logit of up to √d.
  const bool random = planned.random;
  const bool shared = planned.model.config().labels == 0 && planned.model.parameters().find("output.weight") == nullptr;
  const double own = shared ? std::sqrt(static_cast<double>(width_of(planned.model.config()))) : 0;
  // Given weights that fit the data are better than a guess; a classifier's last matrix is new.
  const bool trained = !random && planned.model.config().labels == 0;
  const double threshold = trained ? uniform : uniform + std::max(kInitialLossMargin, own);
  Finding finding{.value = first, .threshold = threshold};
  finding.raised = !(first <= threshold);  // NaN too
  finding.text = fmt::format(
      "the loss before training is {} nats; a uniform guess has {:.3g}, and the labels' frequencies alone {:.3g}",
      rounded(first, 3), uniform, frequencies);
  finding.advice = trained
                       ? "check that the weights belong to this tokenizer and this task"
                       : "a smaller initialization of the embeddings or the output layer, or a norm at the end of the "
                         "stack: the logits are too large";
  return {finding};
}

[[maybe_unused]] const bool kInitialLossAlarm =
    alarms().add("initial_loss", "the loss before training, against a uniform guess and the labels' frequencies", "",
                 {measure_initial_loss});

}  // namespace
}  // namespace plumb::check
