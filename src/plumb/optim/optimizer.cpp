#include "plumb/optim/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/ops/update.h"

namespace plumb {

Registry<OptimizerFactory>& optimizers() {
  static Registry<OptimizerFactory> registry("optimizer");
  return registry;
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          const VariantOptions& options) {
  const auto& entry = optimizers().at(name);
  return entry.make(parameters, options_of(options, name, entry));
}

void Optimizer::step(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings,
                     double gradient_scale) {
  const at::NoGradGuard no_graph;
  const std::vector<Parameter>& all = parameters_.all();
  if (gradients.size() != all.size() || settings.size() != all.size())
    throw Error("the gradients or settings belong to another model");
  std::vector<Tensor> dense;
  dense.reserve(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].sizes() != all[i].value.sizes())
      throw Error(fmt::format("the gradient of '{}' has the wrong shape", all[i].name));
    dense.push_back(gradients[i].detach().contiguous());
  }
  update({dense, settings, gradient_scale});
}

void Optimizer::step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale) {
  step(gradients, std::vector<ParameterStep>(parameters_.all().size(), {.learning_rate = learning_rate}),
       gradient_scale);
}

double global_norm(const std::vector<Tensor>& gradients) { return std::sqrt(ops::sum_of_squares(gradients)); }

ops::Number square_norm(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings) {
  std::vector<Tensor> moving;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!settings[i].frozen) moving.push_back(gradients[i]);
  }
  return ops::sum_of_squares(moving);
}

double global_norm(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings) {
  return std::sqrt(square_norm(gradients, settings));
}

double clip_scale(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1.0; }

}  // namespace plumb
