#include "plumb/analysis/curvature/hessian.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/analysis/batch_share.h"
#include "plumb/base/error.h"
#include "plumb/ops/memory.h"

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

/// sum += the concatenated pieces; an undefined sum becomes a copy of them.
void accumulate(const std::vector<Tensor>& pieces, Tensor& sum) {
  if (!sum.defined()) {
    sum = joined(pieces);
    return;
  }
  const std::vector<Tensor> views = split_like(sum, pieces);
  for (size_t i = 0; i < views.size(); ++i) views[i].add_(pieces[i].detach());
}

/// sum += ∂/∂values of Σ gradient·v, where `gradient` and `values` belong to the same parameters, and v and sum are
/// flat vectors over them. A constant part of the gradient has no graph and adds nothing.
void add_product(const std::vector<Tensor>& gradient, const std::vector<Tensor>& values, const Tensor& v, bool keep,
                 Tensor& sum) {
  const std::vector<Tensor> pieces = split_like(v, values);
  std::vector<Tensor> outputs;
  std::vector<Tensor> weights;
  for (size_t k = 0; k < gradient.size(); ++k) {
    if (!gradient[k].requires_grad()) continue;
    outputs.push_back(gradient[k]);
    weights.push_back(pieces[k]);
  }
  if (!outputs.empty()) accumulate(gradients(outputs, values, weights, /*create_graph=*/false, keep), sum);
}

std::vector<Tensor> chosen(const std::vector<Tensor>& all, const std::vector<size_t>& places) {
  std::vector<Tensor> some;
  for (const size_t place : places) some.push_back(all[place]);
  return some;
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
    accumulate(gradients({share.value}, values, {}), mean.gradient);
  }
  if (!mean.gradient.defined()) mean.gradient = at::zeros({model.parameters().count()}, model.parameters().options());
  group.sum(mean.gradient);
  mean.loss = group.sums({mean.loss})[0];
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

HessianOperator::HessianOperator(Model& model, std::vector<Batch> micro_batches, const HessianOptions& options)
    : model_(model),
      parameters_(model.parameters()),
      micro_batches_(std::move(micro_batches)),
      loss_(options.loss),
      loss_options_(share_of_mean(micro_batches_, options.label_smoothing, true)),
      tokens_(count_tokens(micro_batches_)),
      group_(options.group) {
  if (group_.size() > 1) {
    const std::span<const Batch> share = share_of_batches(micro_batches_, group_);
    micro_batches_ = std::vector<Batch>(share.begin(), share.end());
  }
  keep_graphs(options.graph_memory / group_.neighbors());
}

std::vector<Tensor> HessianOperator::differentiable_gradient(const Batch& batch) {
  ForwardContext context(Pass::measurement);
  const Loss loss = loss_(model_, batch, loss_options_, context);
  return gradients({loss.value}, parameters_.values(), {}, /*create_graph=*/true);
}

void HessianOperator::keep_graphs(int64_t budget) {
  const ops::HeldMemory held(parameters_.device());
  int64_t largest = 0;  // memory growth caused by one micro-batch, an estimate for the next
  for (const Batch& batch : micro_batches_) {
    const int64_t before = held.bytes();
    if (budget <= 0 || before + largest > budget) return;
    kept_.push_back(differentiable_gradient(batch));
    const int64_t after = held.bytes();
    largest = std::max(largest, after - before);
    if (after > budget) {
      kept_.pop_back();
      return;
    }
  }
}

void HessianOperator::require_vector(const Tensor& v, int64_t size) const {
  if (v.dim() == 1 && v.numel() == size && v.scalar_type() == parameters_.type()) return;
  throw Error(fmt::format("the Hessian of {} parameters cannot multiply {} elements of type {}", size, v.numel(),
                          at::toString(v.scalar_type())));
}

/// Calls work(gradient, keep) for each micro-batch, with its share of the gradient, with graph, and whether the graph
/// will be used again.
template <typename Work>
void HessianOperator::for_each_gradient(const Work& work) {
  for (size_t i = 0; i < micro_batches_.size(); ++i) {
    const bool keep = i < kept_.size();
    work(keep ? kept_[i] : differentiable_gradient(micro_batches_[i]), keep);
  }
}

std::vector<Tensor> HessianOperator::multiply(const std::vector<Tensor>& vectors) {
  for (const Tensor& v : vectors) require_vector(v, size());
  const std::vector<Tensor> values = parameters_.values();
  std::vector<Tensor> products(vectors.size());
  for_each_gradient([&](const std::vector<Tensor>& gradient, bool keep) {
    for (size_t j = 0; j < vectors.size(); ++j) {
      add_product(gradient, values, vectors[j], keep || j + 1 < vectors.size(), products[j]);
    }
  });
  for (Tensor& product : products) {
    if (!product.defined()) product = at::zeros({size()}, parameters_.options());
    group_.sum(product);
  }
  return products;
}

std::vector<Tensor> HessianOperator::multiply_blocks(const std::vector<ParameterBlock>& blocks,
                                                     const std::vector<Tensor>& vectors) {
  for (size_t j = 0; j < blocks.size(); ++j) require_vector(vectors.at(j), blocks[j].size);
  const std::vector<Tensor> values = parameters_.values();
  std::vector<Tensor> products(blocks.size());
  for_each_gradient([&](const std::vector<Tensor>& gradient, bool keep) {
    for (size_t j = 0; j < blocks.size(); ++j) {
      const std::vector<size_t>& places = blocks[j].places;
      add_product(chosen(gradient, places), chosen(values, places), vectors[j], keep || j + 1 < blocks.size(),
                  products[j]);
    }
  });
  for (size_t j = 0; j < blocks.size(); ++j) {
    if (!products[j].defined()) products[j] = at::zeros({blocks[j].size}, parameters_.options());
    group_.sum(products[j]);
  }
  return products;
}

}  // namespace plumb
