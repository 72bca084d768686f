#include "plumb/analysis/token_gradient.h"

#include <cmath>
#include <numbers>

namespace plumb {

std::vector<double> measure_token_gradients(Model& model, const std::vector<Batch>& batches,
                                            const std::string& parameter) {
  const at::AutoGradMode with_graph(true);
  const Tensor value = model.parameters().at(parameter).value;
  std::vector<double> norms;
  for (Batch batch : batches) {
    std::vector<size_t> counted;
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.weights.empty() || batch.weights[i] > 0) counted.push_back(i);
    }
    if (counted.empty()) continue;
    // Multiples of the golden ratio, modulo 1, are spread evenly.
    const double share = std::fmod(std::numbers::phi * static_cast<double>(norms.size()), 1);
    batch.weights.assign(batch.labels.size(), 0.0);
    batch.weights[counted[static_cast<size_t>(share * static_cast<double>(counted.size()))]] = 1;
    ForwardContext context(Pass::measurement);
    const Loss loss = model.loss(batch, {}, context);
    norms.push_back(gradients({loss.value}, {value}, {}).front().norm(2, at::kDouble).item<double>());
  }
  return norms;
}

}  // namespace plumb
