#include "plumb/analysis/curvature/logit_jacobian.h"

#include <numeric>

namespace plumb {

LogitJacobian::LogitJacobian(Model& model, const Batch& batch) : values_(model.parameters().values()) {
  const at::AutoGradMode with_graph(true);
  ForwardContext context(Pass::measurement);
  logits_ = model.logits(model.states(batch, context));
  u_ = at::zeros_like(logits_.detach()).requires_grad_(true);  // any value: the derivative does not depend on it
  pulled_ = gradients({logits_}, values_, {u_}, /*create_graph=*/true);
}

Tensor LogitJacobian::times(const std::vector<size_t>& places, const std::vector<Tensor>& v) const {
  std::vector<Tensor> outputs;
  std::vector<Tensor> weights;
  for (size_t k = 0; k < places.size(); ++k) {
    if (!pulled_[places[k]].requires_grad()) continue;  // does not affect the logits
    outputs.push_back(pulled_[places[k]]);
    weights.push_back(v[k]);
  }
  if (outputs.empty()) return at::zeros_like(logits_.detach());
  return gradients(outputs, {u_}, weights, /*create_graph=*/false, /*retain_graph=*/true).front();
}

std::vector<Tensor> LogitJacobian::transposed_times(const std::vector<size_t>& places, const Tensor& u) const {
  std::vector<Tensor> values;
  for (const size_t place : places) values.push_back(values_[place]);
  return gradients({logits_}, values, {u}, /*create_graph=*/false, /*retain_graph=*/true);
}

std::vector<size_t> all_places(const Parameters& parameters) {
  std::vector<size_t> places(parameters.all().size());
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

}  // namespace plumb
