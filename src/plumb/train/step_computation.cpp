#include "plumb/train/step_computation.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/ops/precision.h"
#include "plumb/train/memory_error.h"

namespace plumb {

StepComputation::StepComputation(Model& model, const Task& task, const TrainConfig& config, const StepSource& source)
    : model_(model),
      task_(task),
      config_(config),
      source_(source),
      flops_(model),
      exchange_(make_exchange({}, nullptr)),
      alone_(make_exchange({}, nullptr)) {}

std::unique_ptr<GradientExchange> StepComputation::make_exchange(const Group& among, const ShardLayout* shards) const {
  GradientExchange::Options options;
  options.shards = shards;
  options.overlap = config_.overlap;
  options.half = config_.exchange_precision == "bf16";
  options.order = order_of_layers(model_.parameters());
  return std::make_unique<GradientExchange>(among, model_.parameters().values(), options);
}

void StepComputation::join(const Mesh& mesh, const LayerDivision* division, ParameterShards* shards,
                           std::optional<PipelineSplit> stages) {
  mesh_ = mesh;
  division_ = division;
  shards_ = shards;
  stage_.reset();
  if (stages) {
    stage_ = std::make_unique<StageComputation>(model_, mesh.pipeline, std::move(*stages), config_.pipeline_schedule,
                                                config_.pipeline_chunks);
  }
  exchange_ = make_exchange(mesh.data, shards != nullptr ? &shards->layout() : nullptr);
}

ComputedStep StepComputation::compute(const StepShare& share, int64_t number, const CarriedState& carried,
                                      Inspection* inspection) const {
  ComputedStep computed;
  computed.carried = carried;
  computed.weight = share.weight;
  const auto context_of = [&](const MicroBatch& part) {
    ForwardContext context(model_.config().dropout, static_cast<uint64_t>(config_.seed), number,
                           config_.synchronize_norms ? mesh_.data : Group());
    context.set_placeholder(part.placeholder);
    if (config_.recompute) context.recompute();
    if (unshards()) {
      context.set_source(shards_);
      shards_->unshard_rest();
    }
    if (source_.streams()) context.carry(computed.carried);
    if (inspection != nullptr && !part.placeholder) inspection->watch(context, part.batch);
    return context;
  };
  const auto loss_of = [&](const MicroBatch& part, ForwardContext& context) {
    const double scale = part.placeholder || share.weight == 0 ? 0.0 : 1.0 / share.weight;
    const Loss loss = task_.loss(model_, part.batch, {config_.label_smoothing, scale, false}, context);
    computed.losses.emplace_back(loss.value);
    if (!part.placeholder) {
      computed.nlls.push_back(loss.nll);
      computed.tokens += part.batch.tokens();
    }
    return loss.value;
  };
  if (stage_) {
    computed.gradient = exchange_->sum(staged_gradient(share, context_of, loss_of));
  } else {
    for (const MicroBatch& part : share.micro_batches) {
      ForwardContext context = context_of(part);
      const Tensor loss = loss_of(part, context);
      // The last backward pass exchanges the summed gradient, or each exchanges its own, of which shards are kept.
      const bool exchanges = shards_ != nullptr || &part == &share.micro_batches.back();
      computed.gradient = (exchanges ? exchange_ : alone_)->gradients_of(loss, std::move(computed.gradient));
      if (unshards()) shards_->reshard_all();
    }
  }
  const auto dividing = static_cast<double>(mesh_.tensor.size() * mesh_.pipeline.size());
  for (const auto& [batch, placeholder] : share.micro_batches) {
    if (!placeholder) computed.flops += 3 * flops_.forward(batch) / dividing;
  }
  if (division_ != nullptr) division_->sum_gradients(computed.gradient);
  if (!config_.synchronize_norms) {  // every process has averages of its own tokens: those of rank 0 count
    for (const Parameter& buffer : model_.parameters().buffers()) mesh_.data.broadcast(buffer.value);
  }
  return computed;
}

std::vector<Tensor> StepComputation::staged_gradient(
    const StepShare& share, const std::function<ForwardContext(const MicroBatch&)>& context_of,
    const std::function<Tensor(const MicroBatch&, ForwardContext&)>& loss_of) const {
  std::vector<const Batch*> batches;
  for (const MicroBatch& part : share.micro_batches) batches.push_back(&part.batch);
  return stage_->gradient(
      batches, [&](size_t i) { return context_of(share.micro_batches[i]); },
      [&](size_t i, ForwardContext& context) { return loss_of(share.micro_batches[i], context); });
}

Sums StepComputation::evaluate(const Dataset& dataset, int64_t batch_tokens) const {
  if (unshards()) {
    shards_->unshard_rest();
    const CountBatch count = [&](const Batch& batch, ForwardContext& context, Sums& sums) {
      context.set_source(shards_);
      task_.count(model_, batch, config_.label_smoothing, context, sums);
    };
    Sums sums = plumb::evaluate(task_, dataset, batch_tokens, mesh_.data, count, /*together=*/true);
    shards_->reshard_all();
    return sums;
  }
  if (!stage_) return plumb::evaluate(task_, model_, dataset, batch_tokens, config_.label_smoothing, mesh_.data);
  const Sums own = plumb::evaluate(
      task_, dataset, batch_tokens, mesh_.data, [&](const Batch& batch, ForwardContext& context, Sums& sums) {
        stage_->forward(batch, context, [&] { task_.count(model_, batch, config_.label_smoothing, context, sums); });
      });
  stage_->wait();
  return own.over(mesh_.pipeline);
}

void StepComputation::try_largest(int64_t number) const {
  const std::vector<Tensor> averages = copies_of_buffers(model_.parameters());
  ops::MatrixPrecision precision(ops::precision_of(config_.precision));
  const ops::PrecisionGuard guard(precision);
  StepSource::Batches largest;  // those of each window of the plan
  for (int64_t i = 0; i < source_.plan().windows(); ++i) {
    const auto planned = source_.plan().window(i);
    for (const size_t batch : largest_batches(source_.costs(), *planned)) largest.push_back((*planned)[batch]);
  }
  for (const size_t i : largest_batches(source_.costs(), largest)) {
    within_memory(fmt::format("a dry pass before step {}", number), std::span(largest).subspan(i, 1), [&] {
      // With accumulation, the gradients of one batch are held during the next.
      const StepSource::Batches tried(config_.accumulate > 1 ? 2 : 1, largest[i]);
      (void)compute(source_.share_of(tried, division()), number);
    });
  }
  restore_buffers(model_.parameters(), averages);
}

void StepComputation::within_memory(const std::string& when, std::span<const std::vector<int64_t>> batches,
                                    const std::function<void()>& work) const {
  const std::string hint =
      std::string(config_.micro_batch_tokens > 0 ? "lower train.micro_batch_tokens"
                                                 : "set train.micro_batch_tokens below train.batch_tokens") +
      ", which does not change the result unless a norm is over the batch";
  with_enough_memory(
      work, [&] { return fmt::format("{}: {}", when, describe_batches(source_.costs(), batches)); }, hint);
}

ExchangeCost StepComputation::exchange_cost() const {
  ExchangeCost cost = mesh_.cost();
  if (stage_) cost += stage_->cost();
  cost += exchange_->cost();
  return cost;
}

}  // namespace plumb
