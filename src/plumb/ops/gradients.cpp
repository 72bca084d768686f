#include "plumb/ops/autograd.h"

namespace plumb {

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& grad_outputs, bool create_graph, bool retain_graph) {
  std::vector<Tensor> result = torch::autograd::grad(outputs, inputs, grad_outputs, retain_graph || create_graph,
                                                     create_graph, /*allow_unused=*/true);
  for (size_t i = 0; i < result.size(); ++i) {
    if (!result[i].defined()) result[i] = at::zeros_like(inputs[i]);
  }
  return result;
}

variable_list gradients_by_reference(AutogradContext* ctx, const variable_list& inputs, const variable_list& grads,
                                     const std::function<variable_list(const variable_list&)>& reference) {
  variable_list aliases;  // so that a tensor passed as two inputs has a gradient for each
  for (const Tensor& input : inputs) aliases.push_back(at::alias(input));
  variable_list needed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (ctx->needs_input_grad(i)) needed.push_back(aliases[i]);
  }
  const variable_list computed = gradients(reference(aliases), needed, grads, /*create_graph=*/true);
  variable_list all(inputs.size() + 1);
  auto next = computed.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (ctx->needs_input_grad(i)) all[i] = *next++;
  }
  return all;
}

}  // namespace plumb
