#include "plumb/analysis/curvature/output_jacobian.h"

#include <utility>

namespace plumb {

OutputJacobian::OutputJacobian(std::vector<Tensor> variables, Tensor outputs)
    : variables_(std::move(variables)), outputs_(std::move(outputs)) {
  const at::AutoGradMode with_graph(true);
  u_ = at::zeros_like(outputs_.detach()).requires_grad_(true);  // any value: the derivative does not depend on it
  pulled_ = gradients({outputs_}, variables_, {u_}, /*create_graph=*/true);
}

Tensor OutputJacobian::times(const std::vector<size_t>& places, const std::vector<Tensor>& v) const {
  std::vector<Tensor> outputs;
  std::vector<Tensor> weights;
  for (size_t k = 0; k < places.size(); ++k) {
    if (!depends_on(places[k])) continue;
    outputs.push_back(pulled_[places[k]]);
    weights.push_back(v[k]);
  }
  if (outputs.empty()) return at::zeros_like(outputs_.detach());
  return gradients(outputs, {u_}, weights, /*create_graph=*/false, /*retain_graph=*/true).front();
}

std::vector<Tensor> OutputJacobian::transposed_times(const std::vector<size_t>& places, const Tensor& u) const {
  std::vector<Tensor> values;
  for (const size_t place : places) values.push_back(variables_[place]);
  return gradients({outputs_}, values, {u}, /*create_graph=*/false, /*retain_graph=*/true);
}

}  // namespace plumb
