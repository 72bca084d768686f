// How much the data teach: examples, tokens per step, and repetitions.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

constexpr int64_t kMostCosts = 1'000'000;  // examples whose tokens are counted

std::vector<Finding> measure_data_amount(const PlannedRun& planned) {
  const TrainConfig& train = planned.config;
  const int64_t examples = planned.train.size();
  const int64_t counted = std::min(kMostCosts, examples);
  double tokens = 0;
  for (int64_t i = 0; i < counted; ++i) tokens += static_cast<double>(planned.train.cost(i).larger());
  tokens *= static_cast<double>(examples) / static_cast<double>(std::max<int64_t>(counted, 1));
  const auto batch = static_cast<double>(train.batch_tokens * train.accumulate);

  Finding whole{.value = tokens, .threshold = batch};
  whole.raised = examples < 2 || tokens < batch;
  whole.text = fmt::format("the training data are {} examples of {:.0f} tokens in all; a step reads {:.0f}", examples,
                           tokens, batch);
  whole.advice = "more data, or a smaller train.batch_tokens: every step sees all of the data";

  // What a step learns from a few sentences is mostly noise; the smallest usual batches are a few hundred tokens.
  Finding step{.value = batch, .threshold = 100};
  step.raised = batch < step.threshold;
  step.text = fmt::format("a step reads {:.0f} tokens", batch);
  step.advice = "a larger train.batch_tokens or train.accumulate";

  // Hundreds of epochs are usual for small data, where validation shows whether they help. A thousand only repeat.
  const double epochs = static_cast<double>(planned.steps) * std::min(batch, tokens) / std::max(tokens, 1.0);
  Finding repeated{.value = epochs, .threshold = 1000};
  repeated.raised = epochs > repeated.threshold;
  repeated.text = fmt::format("the run reads its data {:.3g} times", epochs);
  repeated.advice = "more data, or fewer train.steps";

  return {whole, step, repeated};
}

[[maybe_unused]] const bool kDataAmountAlarm =
    alarms().add("data_amount", "examples, tokens per step and epochs", "Muennighoff et al. 2023, arXiv 2305.16264",
                 {measure_data_amount});

}  // namespace
}  // namespace plumb::check
