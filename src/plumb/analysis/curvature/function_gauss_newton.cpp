#include "plumb/analysis/curvature/function_gauss_newton.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "plumb/analysis/curvature/kept_graphs.h"
#include "plumb/base/error.h"
#include "plumb/nn/parameters.h"

namespace plumb {

FunctionGaussNewton::FunctionGaussNewton(std::vector<Tensor> variables, std::vector<ComposedTerm> terms,
                                         int64_t graph_memory)
    : variables_(std::move(variables)), terms_(std::move(terms)), all_(variables_.size()) {
  if (variables_.empty()) throw Error("a Gauss-Newton matrix needs at least one variable");
  std::iota(all_.begin(), all_.end(), size_t{0});
  keep_graphs(kept_, terms_.size(), graph_memory, variables_.front().device(),
              [this](size_t i) { return part_of(terms_[i]); });
}

FunctionGaussNewton::Part FunctionGaussNewton::part_of(const ComposedTerm& term) const {
  const Tensor outputs = term.outputs();
  if (!outputs.defined() || !outputs.requires_grad()) {
    throw Error("the outputs do not depend on the variables", "compute them from tensors that require gradients");
  }
  Part part{.jacobian = OutputJacobian(variables_, outputs), .outputs = outputs.detach().requires_grad_(true)};
  const Tensor value = term.loss(part.outputs);
  if (!value.defined() || value.numel() != 1 || !value.requires_grad()) {
    throw Error("a Gauss-Newton matrix needs a single number that depends on the outputs",
                "sum the losses, and compute them from the outputs that are passed");
  }
  part.value = value.item<double>();
  part.slope = gradients({value.reshape({})}, {part.outputs}, {}, /*create_graph=*/true).front();
  if (!part.slope.requires_grad()) {
    throw Error("the loss is linear in the outputs, so that its Gauss-Newton matrix is zero",
                "end the outputs before the loss becomes curved: logits instead of log-probabilities");
  }
  return part;
}

template <typename Work>
void FunctionGaussNewton::for_each_part(const Work& work) {
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (i < kept_.size()) {
      work(kept_[i]);
    } else {
      work(part_of(terms_[i]));
    }
  }
}

int64_t FunctionGaussNewton::size_of(const std::vector<size_t>& block) const {
  int64_t size = 0;
  for (const size_t place : block) size += variables_.at(place).numel();
  return size;
}

std::vector<Tensor> FunctionGaussNewton::multiply(const std::vector<Tensor>& vectors) {
  return multiply_blocks(std::vector(vectors.size(), all_), vectors);
}

std::vector<Tensor> FunctionGaussNewton::multiply_blocks(const std::vector<std::vector<size_t>>& blocks,
                                                         const std::vector<Tensor>& vectors) {
  std::vector<Tensor> products;
  std::vector<std::vector<Tensor>> pieces;
  for (size_t j = 0; j < blocks.size(); ++j) {
    const Tensor& v = vectors.at(j);
    const int64_t size = size_of(blocks[j]);
    if (v.dim() != 1 || v.numel() != size || v.scalar_type() != variables_.front().scalar_type()) {
      throw Error(
          fmt::format("the Gauss-Newton matrix over {} elements of type {} cannot multiply {} elements of type {}",
                      size, at::toString(variables_.front().scalar_type()), v.numel(), at::toString(v.scalar_type())));
    }
    std::vector<Tensor> like;
    for (const size_t place : blocks[j]) like.push_back(variables_[place]);
    pieces.push_back(split_like(v, like));
    products.push_back(at::zeros({size}, options()));
  }
  for_each_part([&](const Part& part) {
    for (size_t j = 0; j < blocks.size(); ++j) {
      const Tensor moved = part.jacobian.times(blocks[j], pieces[j]);
      const Tensor curved = gradients({part.slope}, {part.outputs}, {moved}, /*create_graph=*/false,
                                      /*retain_graph=*/true)
                                .front();
      products[j].add_(joined(part.jacobian.transposed_times(blocks[j], curved)));
    }
  });
  return products;
}

FunctionHessian::Point FunctionGaussNewton::point() {
  FunctionHessian::Point point{.gradient = at::zeros({size()}, options()),
                               .curved = std::vector<bool>(variables_.size(), false)};
  for_each_part([&](const Part& part) {
    point.value += part.value;
    point.gradient.add_(joined(part.jacobian.transposed_times(all_, part.slope.detach())));
    for (const size_t place : all_) point.curved[place] = point.curved[place] || part.jacobian.depends_on(place);
  });
  return point;
}

}  // namespace plumb
