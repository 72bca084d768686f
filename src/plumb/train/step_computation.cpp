#include "plumb/train/step_computation.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/ops/precision.h"
#include "plumb/train/memory_error.h"
#include "plumb/train/step_share.h"

namespace plumb {

StepComputation::StepComputation(Model& model, const Task& task, const TrainConfig& config, const Dataset& train_set,
                                 std::vector<ExampleCost> costs)
    : model_(model),
      task_(task),
      config_(config),
      train_set_(train_set),
      costs_(std::move(costs)),
      flops_(model),
      exchange_(make_exchange({})),
      alone_(make_exchange({})) {}

std::unique_ptr<GradientExchange> StepComputation::make_exchange(const Group& among) const {
  GradientExchange::Options options;
  options.overlap = config_.overlap;
  options.half = config_.exchange_precision == "bf16";
  return std::make_unique<GradientExchange>(among, model_.parameters().values(), options);
}

void StepComputation::join(const Group& group) {
  group_ = group;
  exchange_ = make_exchange(group);
}

ComputedStep StepComputation::compute(std::span<const std::vector<int64_t>> batches, int64_t number,
                                      Inspection* inspection) const {
  const StepShare share =
      step_share(train_set_, costs_, batches, {group_.rank(), group_.size(), config_.micro_batch_tokens});
  ComputedStep computed;
  computed.weight = share.weight;
  for (const MicroBatch& part : share.micro_batches) {
    const auto& [batch, idle] = part;
    ForwardContext context(model_.config().dropout, static_cast<uint64_t>(config_.seed), number,
                           config_.synchronize_norms ? group_ : Group());
    if (inspection != nullptr && !idle) inspection->watch(context, batch);
    const double scale = idle || share.weight == 0 ? 0.0 : 1.0 / share.weight;
    const Loss loss = task_.loss(model_, batch, {config_.label_smoothing, scale, false}, context);
    const bool last = &part == &share.micro_batches.back();  // exchanges the sum while its backward pass runs
    computed.gradient = (last ? exchange_ : alone_)->gradients_of(loss.value, computed.gradient);
    computed.losses.emplace_back(loss.value);
    if (idle) continue;
    computed.nlls.push_back(loss.nll);
    computed.tokens += batch.tokens();
    computed.flops += 3 * flops_.forward(batch);
  }
  return computed;
}

void StepComputation::try_largest(const std::vector<std::vector<int64_t>>& plan, int64_t number) const {
  const std::vector<Tensor> averages = copies_of_buffers(model_.parameters());
  ops::MatrixPrecision precision(ops::precision_of(config_.precision));
  const ops::PrecisionGuard guard(precision);
  for (const size_t i : largest_batches(costs_, plan)) {
    within_memory(fmt::format("a dry pass before step {}", number), std::span(plan).subspan(i, 1), [&] {
      // Where gradients are accumulated, those of one batch are held during the next.
      const std::vector<std::vector<int64_t>> tried(config_.accumulate > 1 ? 2 : 1, plan[i]);
      (void)compute(tried, number);
    });
  }
  restore_buffers(model_.parameters(), averages);
}

void StepComputation::within_memory(const std::string& when, std::span<const std::vector<int64_t>> batches,
                                    const std::function<void()>& work) const {
  const char* hint = config_.micro_batch_tokens > 0
                         ? "lower train.micro_batch_tokens, which does not change the result"
                         : "set train.micro_batch_tokens, which does not change the result, below train.batch_tokens";
  with_enough_memory(
      work, [&] { return fmt::format("{}: {}", when, describe_batches(costs_, batches)); }, hint);
}

ExchangeCost StepComputation::exchanged() const {
  ExchangeCost cost = group_.cost();
  cost.seconds += exchange_->cost().seconds;
  cost.bytes += exchange_->cost().bytes;
  return cost;
}

}  // namespace plumb
