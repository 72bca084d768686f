#include "plumb/optim/optimizer.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

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

}  // namespace plumb
