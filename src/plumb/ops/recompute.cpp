#include "plumb/ops/recompute.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/precision.h"

namespace plumb::ops {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

/// The inputs, cut off from their graph, as the beginning of another.
std::vector<Tensor> cut_off(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> begun;
  begun.reserve(inputs.size());
  for (const Tensor& input : inputs) begun.push_back(input.detach().requires_grad_(input.requires_grad()));
  return begun;
}

bool is_among(const std::vector<Tensor>& tensors, const Tensor& one) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& each) { return each.is_same(one); });
}

/// The leaves that a graph reads, except for its inputs, in an order that depends on the graph alone.
std::vector<Tensor> leaves_of(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  std::unordered_set<Node*> seen;
  std::vector<Node*> waiting;
  for (const Tensor& output : outputs) {
    if (output.grad_fn()) waiting.push_back(output.grad_fn().get());
  }
  while (!waiting.empty()) {
    Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(node); leaf != nullptr) {
      if (!is_among(inputs, leaf->variable)) leaves.push_back(leaf->variable);
    }
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid()) waiting.push_back(edge.function.get());
    }
  }
  return leaves;
}

/// A part between its two passes.
struct Recomputation {
  RecomputedPart part;
  std::vector<Tensor> results;  // of the forward pass, until it returns them; undefined: the input `passed`
  std::vector<size_t> passed;
  std::vector<Tensor> leaves;
  std::optional<std::pair<Precision, bool>> precision;  // of the forward pass, and whether weights stay
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static variable_list forward(AutogradContext* ctx, at::TensorList inputs, at::TensorList /*leaves*/,
                               const std::shared_ptr<Recomputation>& recomputation) {
    ctx->set_materialize_grads(false);
    ctx->save_for_backward(inputs.vec());
    save_value(ctx, recomputation);
    variable_list results;
    for (size_t i = 0; i < recomputation->results.size(); ++i)
      results.push_back(recomputation->results[i].defined() ? recomputation->results[i]
                                                            : inputs[recomputation->passed[i]]);
    recomputation->results.clear();
    return results;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto& recomputation = saved_value<std::shared_ptr<Recomputation>>(ctx);
    if (at::GradMode::is_enabled())
      throw Error("second derivatives of recomputed layers are not available", "set train.recompute to false");
    const variable_list inputs = cut_off(ctx->get_saved_variables());
    std::vector<Tensor> results;
    {
      const at::AutoGradMode with_graph(true);
      std::optional<MatrixPrecision> precision;
      std::optional<PrecisionGuard> guard;  // a backward pass on a device has a thread of its own
      if (recomputation->precision) {
        precision.emplace(recomputation->precision->first, recomputation->precision->second);
        guard.emplace(*precision);
      }
      results = recomputation->part.replay(inputs);
    }
    std::vector<Tensor> from, weights, wanted;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!grads[i].defined() || !results[i].requires_grad()) continue;
      from.push_back(results[i]);
      weights.push_back(grads[i]);
    }
    results.clear();
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(wanted),
                 [](const Tensor& input) { return input.requires_grad(); });
    wanted.insert(wanted.end(), recomputation->leaves.begin(), recomputation->leaves.end());
    variable_list result(wanted.size());
    if (!from.empty()) result = torch::autograd::grad(from, wanted, weights, false, false, true);
    if (recomputation->part.after) recomputation->part.after();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].requires_grad()) result.insert(result.begin() + static_cast<std::ptrdiff_t>(i), Tensor());
    }
    result.emplace_back();  // of `recomputation`
    return result;
  }
};

}  // namespace

std::vector<Tensor> recomputed(const std::vector<Tensor>& inputs, RecomputedPart part) {
  const auto recomputation = std::make_shared<Recomputation>();
  {
    const std::vector<Tensor> begun = cut_off(inputs);
    const std::vector<Tensor> results = part.forward(begun);
    recomputation->leaves = leaves_of(results, begun);
    for (const Tensor& result : results) {
      const auto same =
          std::find_if(begun.begin(), begun.end(), [&](const Tensor& input) { return input.is_same(result); });
      recomputation->passed.push_back(static_cast<size_t>(same - begun.begin()));
      recomputation->results.push_back(same == begun.end() ? result.detach() : Tensor());
    }
  }
  recomputation->part = std::move(part);
  if (const MatrixPrecision* active = active_precision())
    recomputation->precision = {active->precision(), active->weights_stay()};
  const std::vector<Tensor> leaves = recomputation->leaves;
  return Recomputed::apply(at::TensorList(inputs), at::TensorList(leaves), recomputation);
}

}  // namespace plumb::ops
