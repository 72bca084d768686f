#include "plumb/optim/optimizer.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {

Registry<OptimizerFactory>& optimizers() {
  static Registry<OptimizerFactory> registry(
      "optimizer",
      {.title = "Optimizers",
       .key = "train.optimizer",
       .before =
           "g is the gradient after clipping (`train.clip_value`, `train.clip_block`, `train.clip_norm`), lr the "
           "learning rate at step t, and weight_decay `train.weight_decay`; lr and weight_decay can differ between "
           "`[[train.groups]]`. Norms, biases, scalars and positions have no weight decay unless a group sets one. "
           "Frozen parameters and their optimizer state do not change. With `train.cautious`, the elements of an "
           "update u whose sign disagrees with the gradient's are left out, and the rest of a parameter's update is "
           "scaled up in proportion.",
       .after = "Weight decay is part of the update, not a factor on w: in float32, a decay lr·weight_decay below "
                "6e-8, the relative distance between neighboring numbers, moves only some of the weights, each by "
                "that distance, in such a proportion that the decay is exact on average. A weight without an update, "
                "because its gradient has long been 0, keeps its value."});
  return registry;
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          const VariantOptions& options) {
  return make_variant(optimizers(), "train.", name, options, parameters);
}

std::string name_of(const StateTensor& tensor, const Parameters& parameters) {
  if (!tensor.parameter) return tensor.kind;
  const std::string& name = parameters.all()[*tensor.parameter].name;
  return tensor.kind.empty() ? name : tensor.kind + "." + name;
}

NamedTensors named(const std::vector<StateTensor>& tensors, const Parameters& parameters) {
  NamedTensors all;
  for (const StateTensor& tensor : tensors) all.emplace_back(name_of(tensor, parameters), tensor.value);
  return all;
}

std::vector<StateTensor> state_of(const NamedTensors& values, const Parameters& parameters) {
  std::vector<StateTensor> state;
  for (const auto& [name, value] : values) {
    if (const Parameter* parameter = parameters.find(name)) {
      state.push_back({.parameter = static_cast<size_t>(parameter - parameters.all().data()), .value = value});
    } else {
      state.push_back({.kind = name, .value = value});
    }
  }
  return state;
}

void Optimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  for (const StateTensor& tensor : state_tensors()) {
    const std::string name = name_of(tensor, parameters_);
    if (!tensor.entries) {
      load_tensor(tensors, name, tensor.value, origin);
      continue;
    }
    const Tensor& stored = find_tensor(tensors, name, origin);
    if (stored.numel() != tensor.value.numel() && stored.numel() != 1) {
      throw Error(
          fmt::format("{}: tensor '{}' has {} elements, not {}", origin, name, stored.numel(), tensor.value.numel()),
          "the file belongs to another configuration");
    }
    tensor.value.copy_(stored.reshape({-1}));
  }
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
