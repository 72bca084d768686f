#include "plumb/ops/torch.h"

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

}  // namespace plumb
