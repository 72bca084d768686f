#include "plumb/analysis/curvature/hessian.h"

#include <algorithm>

#include "plumb/analysis/batch_share.h"

namespace plumb {
namespace {

int64_t count_tokens(const std::vector<Batch>& batches) {
  int64_t tokens = 0;
  for (const Batch& batch : batches) tokens += std::ssize(batch.labels);
  return tokens;
}

/// Loss options that scale a micro-batch's loss to its share of the overall mean.
LossOptions share_of_mean(const std::vector<Batch>& batches, double label_smoothing, bool twice_differentiable) {
  return {.label_smoothing = label_smoothing,
          .scale = 1 / total_weight(batches),
          .twice_differentiable = twice_differentiable};
}

/// One term of the mean loss for each micro-batch of this process.
std::vector<FunctionTerm> terms_of(Model& model, const std::vector<Batch>& micro_batches,
                                   const HessianOptions& options) {
  const LossOptions loss_options = share_of_mean(micro_batches, options.label_smoothing, true);
  std::vector<FunctionTerm> terms;
  for (const Batch& batch : share_of_batches(micro_batches, options.group)) {
    terms.emplace_back([&model, batch, loss = options.loss, loss_options] {
      ForwardContext context(Pass::measurement);
      return loss(model, batch, loss_options, context).value;
    });
  }
  return terms;
}

/// See FunctionHessian.
std::function<bool(bool)> on_any_part(const LayerDivision* division) {
  if (division == nullptr) return {};
  return [group = division->group()](bool condition) { return group.any(condition); };
}

}  // namespace

MeanLoss mean_loss(Model& model, const std::vector<Batch>& micro_batches, double label_smoothing,
                   const LossFunction& loss, const Group& group) {
  const LossOptions options = share_of_mean(micro_batches, label_smoothing, false);
  const std::vector<Tensor> values = model.parameters().values();
  MeanLoss mean;
  for (const Batch& batch : share_of_batches(micro_batches, group)) {
    ForwardContext context(Pass::measurement);
    const Loss share = loss(model, batch, options, context);
    mean.loss += share.value.item<double>();
    mean.nll += share.nll * *options.scale;
    const Tensor gradient = joined(gradients({share.value}, values, {}));
    mean.gradient = mean.gradient.defined() ? mean.gradient.add_(gradient) : gradient;
  }
  if (!mean.gradient.defined()) mean.gradient = at::zeros({model.parameters().count()}, model.parameters().options());
  group.sum(mean.gradient);
  const std::vector<double> sums = group.sums({mean.loss, mean.nll});
  mean.loss = sums[0];
  mean.nll = sums[1];
  return mean;
}

std::vector<ParameterBlock> layer_blocks(const Parameters& parameters) {
  std::vector<ParameterBlock> blocks;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    const std::optional<LayerId> owner = LayerId::of_parameter(parameter.name);
    if (!owner || !owner->layer) continue;
    const LayerId layer{owner->stack, owner->layer};
    auto block = std::find_if(blocks.begin(), blocks.end(), [&](const auto& known) { return known.id == layer; });
    if (block == blocks.end()) block = blocks.insert(block, {layer, {}, 0});
    block->places.push_back(i);
    block->size += parameter.value.numel();
  }
  return blocks;
}

HessianOperator::HessianOperator(Model& model, const std::vector<Batch>& micro_batches, const HessianOptions& options)
    : tokens_(count_tokens(micro_batches)),
      group_(options.group),
      hessian_(
          model.parameters().values(), terms_of(model, micro_batches, options),
          options.graph_memory / (options.division != nullptr ? options.division->group() : options.group).neighbors(),
          on_any_part(options.division), options.reserved_memory) {}

std::vector<Tensor> HessianOperator::summed(std::vector<Tensor> products) const {
  for (Tensor& product : products) group_.sum(product);
  return products;
}

std::vector<Tensor> HessianOperator::multiply(const std::vector<Tensor>& vectors) {
  return summed(hessian_.multiply(vectors));
}

std::vector<Tensor> HessianOperator::multiply_blocks(const std::vector<ParameterBlock>& blocks,
                                                     const std::vector<Tensor>& vectors) {
  std::vector<std::vector<size_t>> places;
  for (const ParameterBlock& block : blocks) places.push_back(block.places);
  return summed(hessian_.multiply_blocks(places, vectors));
}

}  // namespace plumb
