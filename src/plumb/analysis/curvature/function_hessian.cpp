#include "plumb/analysis/curvature/function_hessian.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "plumb/analysis/curvature/kept_graphs.h"
#include "plumb/base/error.h"
#include "plumb/nn/parameters.h"

namespace plumb {
namespace {

/// sum += the concatenated pieces; an undefined sum becomes a copy of them.
void accumulate(const std::vector<Tensor>& pieces, Tensor& sum) {
  if (!sum.defined()) {
    sum = joined(pieces);
    return;
  }
  const std::vector<Tensor> views = split_like(sum, pieces);
  for (size_t i = 0; i < views.size(); ++i) views[i].add_(pieces[i].detach());
}

/// sum += ∂/∂values of Σ gradient·v, where `gradient` and `values` belong to the same variables, and v and sum are
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
  for (const size_t place : places) some.push_back(all.at(place));
  return some;
}

}  // namespace

FunctionHessian::FunctionHessian(std::vector<Tensor> variables, std::vector<FunctionTerm> terms, int64_t graph_memory,
                                 const std::function<bool(bool)>& on_any, int64_t reserved)
    : variables_(std::move(variables)), terms_(std::move(terms)) {
  if (variables_.empty()) throw Error("a Hessian needs at least one variable");
  for (const Tensor& variable : variables_) size_ += variable.numel();
  keep_graphs(
      kept_, terms_.size(), graph_memory, variables_.front().device(),
      [this](size_t i) { return differentiate(terms_[i]); }, on_any, reserved);
}

std::vector<Tensor> FunctionHessian::differentiate(const FunctionTerm& term) const {
  const Tensor value = term();
  if (!value.defined() || value.numel() != 1 || !value.requires_grad()) {
    throw Error("a Hessian needs a single number that depends on the variables",
                "sum the losses, and compute them from tensors that require gradients");
  }
  return gradients({value.reshape({})}, variables_, {}, /*create_graph=*/true);
}

int64_t FunctionHessian::size_of(const std::vector<size_t>& block) const {
  int64_t size = 0;
  for (const size_t place : block) size += variables_.at(place).numel();
  return size;
}

std::vector<Tensor> FunctionHessian::multiply(const std::vector<Tensor>& vectors) {
  std::vector<size_t> all(variables_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return multiply_blocks(std::vector(vectors.size(), all), vectors);
}

std::vector<Tensor> FunctionHessian::multiply_blocks(const std::vector<std::vector<size_t>>& blocks,
                                                     const std::vector<Tensor>& vectors) {
  const at::ScalarType type = variables_.front().scalar_type();
  for (size_t j = 0; j < blocks.size(); ++j) {
    const Tensor& v = vectors.at(j);
    if (v.dim() == 1 && v.numel() == size_of(blocks[j]) && v.scalar_type() == type) continue;
    throw Error(fmt::format("the Hessian over {} elements of type {} cannot multiply {} elements of type {}",
                            size_of(blocks[j]), at::toString(type), v.numel(), at::toString(v.scalar_type())));
  }
  std::vector<Tensor> products(blocks.size());
  for (size_t i = 0; i < terms_.size(); ++i) {
    const bool keep = i < kept_.size();
    const std::vector<Tensor> gradient = keep ? kept_[i] : differentiate(terms_[i]);
    for (size_t j = 0; j < blocks.size(); ++j) {
      add_product(chosen(gradient, blocks[j]), chosen(variables_, blocks[j]), vectors[j], keep || j + 1 < blocks.size(),
                  products[j]);
    }
  }
  for (size_t j = 0; j < blocks.size(); ++j) {
    if (!products[j].defined()) products[j] = at::zeros({size_of(blocks[j])}, options());
  }
  return products;
}

LinearOperator function_hessian(const Tensor& value, const std::vector<Tensor>& variables) {
  const auto hessian = std::make_shared<FunctionHessian>(
      variables, std::vector<FunctionTerm>{[value] { return value; }}, std::numeric_limits<int64_t>::max());
  return [hessian](const Tensor& v) { return hessian->multiply({v}).front(); };
}

}  // namespace plumb
