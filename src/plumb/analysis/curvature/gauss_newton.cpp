#include "plumb/analysis/curvature/gauss_newton.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/analysis/batch_share.h"
#include "plumb/analysis/curvature/kept_graphs.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

/// (labels, 1): the weights of a batch's labels divided by the total.
Tensor column_of_weights(const Batch& batch, double total, const at::TensorOptions& type) {
  const auto labels = static_cast<int64_t>(batch.labels.size());
  if (batch.weights.empty()) return at::full({labels, 1}, 1 / total, type);
  return (at::tensor(batch.weights, at::kDouble) / total).unsqueeze(1).to(type.device()).to(type.dtype());
}

}  // namespace

GaussNewtonOperator::GaussNewtonOperator(Model& model, std::vector<Batch> micro_batches, int64_t graph_memory,
                                         Group group)
    : model_(model),
      micro_batches_(std::move(micro_batches)),
      weight_(total_weight(micro_batches_)),
      group_(std::move(group)) {
  if (group_.size() > 1) {
    const std::span<const Batch> share = share_of_batches(micro_batches_, group_);
    micro_batches_ = std::vector<Batch>(share.begin(), share.end());
  }
  graph_memory /= group_.neighbors();
  keep_graphs(kept_, micro_batches_.size(), graph_memory, model.parameters().device(),
              [this](size_t i) { return part_of(micro_batches_[i]); });
}

GaussNewtonOperator::Part GaussNewtonOperator::part_of(const Batch& batch) const {
  OutputJacobian jacobian = logit_jacobian(model_, batch);
  Tensor probabilities = at::softmax(jacobian.outputs(), 1);
  return {std::move(jacobian), std::move(probabilities),
          column_of_weights(batch, weight_, model_.parameters().options())};
}

Tensor GaussNewtonOperator::product(const std::vector<size_t>& places, const Tensor& v) {
  std::vector<Tensor> values;
  int64_t size = 0;
  for (const size_t place : places) {
    values.push_back(model_.parameters().all()[place].value);
    size += values.back().numel();
  }
  if (v.dim() != 1 || v.numel() != size || v.scalar_type() != model_.parameters().type()) {
    throw Error(fmt::format("the Gauss-Newton matrix of {} parameters cannot multiply {} elements of type {}", size,
                            v.numel(), at::toString(v.scalar_type())));
  }
  const std::vector<Tensor> pieces = split_like(v, values);
  Tensor sum = at::zeros({size}, model_.parameters().options());
  for (size_t i = 0; i < micro_batches_.size(); ++i) {
    if (micro_batches_[i].weight() == 0) continue;
    std::optional<Part> made;
    if (i >= kept_.size()) made.emplace(part_of(micro_batches_[i]));
    const Part& part = made ? *made : kept_[i];
    const Tensor moved = part.probabilities * part.jacobian.times(places, pieces);
    const Tensor curved = part.weights * (moved - part.probabilities * moved.sum(1, true));
    sum.add_(joined(part.jacobian.transposed_times(places, curved)));
  }
  group_.sum(sum);
  return sum;
}

Tensor GaussNewtonOperator::operator()(const Tensor& v) { return product(all_places(model_.parameters()), v); }

Tensor GaussNewtonOperator::multiply_block(const ParameterBlock& block, const Tensor& v) {
  return product(block.places, v);
}

}  // namespace plumb
