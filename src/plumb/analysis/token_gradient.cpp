#include "plumb/analysis/token_gradient.h"

namespace plumb {

std::vector<double> measure_token_gradients(Model& model, const std::vector<Batch>& batches,
                                            const std::string& parameter) {
  const at::AutoGradMode with_graph(true);
  const Tensor value = model.parameters().at(parameter).value;
  constexpr size_t kStride = 7;  // from one batch's label to the next one's
  std::vector<double> norms;
  for (Batch batch : batches) {
    if (batch.labels.empty()) continue;
    batch.weights.assign(batch.labels.size(), 0.0);
    batch.weights[kStride * norms.size() % batch.labels.size()] = 1;
    ForwardContext context(Pass::measurement);
    const Loss loss = model.loss(batch, {}, context);
    norms.push_back(gradients({loss.value}, {value}, {}).front().norm(2, at::kDouble).item<double>());
  }
  return norms;
}

}  // namespace plumb
