#include "plumb/analysis/curvature/logit_jacobian.h"

#include <numeric>

namespace plumb {

OutputJacobian logit_jacobian(Model& model, const Batch& batch) {
  const at::AutoGradMode with_graph(true);
  ForwardContext context(Pass::measurement);
  return {model.parameters().values(), model.logits(model.states(batch, context))};
}

std::vector<size_t> all_places(const Parameters& parameters) {
  std::vector<size_t> places(parameters.all().size());
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

}  // namespace plumb
