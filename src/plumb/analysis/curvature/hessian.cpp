#include "plumb/analysis/curvature/hessian.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/ops/memory.h"

namespace plumb {
namespace {

int64_t count_tokens(const std::vector<Batch>& batches) {
  int64_t tokens = 0;
  for (const Batch& batch : batches) tokens += batch.target_layout.tokens();
  if (tokens == 0) throw Error("a loss needs at least one target token");
  return tokens;
}

/// sum += pieces; an undefined sum starts as a copy of them.
void accumulate(const Parameters& parameters, const std::vector<Tensor>& pieces, Tensor& sum) {
  if (!sum.defined()) {
    sum = parameters.join(pieces);
    return;
  }
  const std::vector<Tensor> views = parameters.split(sum);
  for (size_t i = 0; i < views.size(); ++i) views[i].add_(pieces[i].detach());
}

LossOptions share_of_mean(int64_t tokens, double label_smoothing, bool twice_differentiable) {
  LossOptions options;
  options.label_smoothing = label_smoothing;
  options.scale = 1.0 / static_cast<double>(tokens);
  options.twice_differentiable = twice_differentiable;
  return options;
}

}  // namespace

MeanLoss mean_loss(Model& model, const std::vector<Batch>& micro_batches, double label_smoothing) {
  const LossOptions options = share_of_mean(count_tokens(micro_batches), label_smoothing, false);
  const std::vector<Tensor> values = model.parameters().values();
  MeanLoss mean;
  for (const Batch& batch : micro_batches) {
    ForwardContext context(Pass::measurement);
    const Loss loss = model.loss(batch, options, context);
    mean.loss += loss.value.item<double>();
    accumulate(model.parameters(), gradients({loss.value}, values, {}), mean.gradient);
  }
  return mean;
}

HessianOperator::HessianOperator(Model& model, std::vector<Batch> micro_batches, const HessianOptions& options)
    : model_(model),
      parameters_(model.parameters()),
      micro_batches_(std::move(micro_batches)),
      label_smoothing_(options.label_smoothing),
      tokens_(count_tokens(micro_batches_)) {
  keep_graphs(options.graph_memory);
}

std::vector<Tensor> HessianOperator::differentiable_gradient(const Batch& batch) {
  ForwardContext context(Pass::measurement);
  const Loss loss = model_.loss(batch, share_of_mean(tokens_, label_smoothing_, true), context);
  return gradients({loss.value}, parameters_.values(), {}, /*create_graph=*/true);
}

void HessianOperator::keep_graphs(int64_t budget) {
  const int64_t begin = ops::memory_in_use();
  int64_t largest = 0;  // growth by one micro-batch: what the next may need as well
  for (const Batch& batch : micro_batches_) {
    const int64_t before = ops::memory_in_use();
    if (budget <= 0 || before - begin + largest > budget) return;
    kept_.push_back(differentiable_gradient(batch));
    const int64_t after = ops::memory_in_use();
    largest = std::max(largest, after - before);
    if (after - begin > budget) {
      kept_.pop_back();
      return;
    }
  }
}

std::vector<Tensor> HessianOperator::multiply(const std::vector<Tensor>& vectors) {
  for (const Tensor& v : vectors) {
    if (v.dim() == 1 && v.numel() == size() && v.scalar_type() == parameters_.type()) continue;
    throw Error(fmt::format("the Hessian of {} parameters cannot multiply {} elements of type {}", size(), v.numel(),
                            at::toString(v.scalar_type())));
  }
  const std::vector<Tensor> values = parameters_.values();
  std::vector<Tensor> products(vectors.size());
  for (size_t i = 0; i < micro_batches_.size(); ++i) {
    const bool keep = i < kept_.size();
    const std::vector<Tensor> gradient = keep ? kept_[i] : differentiable_gradient(micro_batches_[i]);
    // A part of the gradient that is constant has no graph and adds nothing.
    std::vector<Tensor> outputs;
    std::vector<size_t> places;
    for (size_t k = 0; k < gradient.size(); ++k) {
      if (!gradient[k].requires_grad()) continue;
      outputs.push_back(gradient[k]);
      places.push_back(k);
    }
    if (outputs.empty()) continue;
    for (size_t j = 0; j < vectors.size(); ++j) {
      const std::vector<Tensor> pieces = parameters_.split(vectors[j]);
      std::vector<Tensor> weights;
      for (const size_t k : places) weights.push_back(pieces[k]);
      const bool used_again = keep || j + 1 < vectors.size();
      accumulate(parameters_, gradients(outputs, values, weights, /*create_graph=*/false, used_again), products[j]);
    }
  }
  for (Tensor& product : products) {
    if (!product.defined()) product = at::zeros({size()}, at::TensorOptions(parameters_.type()));
  }
  return products;
}

}  // namespace plumb
