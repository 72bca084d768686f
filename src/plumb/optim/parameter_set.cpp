#include "plumb/optim/parameter_set.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {

ParameterSet::ParameterSet(const Parameters& parameters, const std::function<bool(const Parameter&)>& belongs)
    : options_(parameters.flat().options()) {
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    if (belongs && !belongs(parameter)) continue;
    members_.push_back({i, parameter, parameter.value.detach().view({-1}), count_});
    count_ += parameter.value.numel();
  }
}

std::vector<size_t> ParameterSet::moving(const OptimizerStep& step) const {
  std::vector<size_t> all;
  for (size_t k = 0; k < members_.size(); ++k) {
    if (!step.parameters[members_[k].index].frozen) all.push_back(k);
  }
  return all;
}

std::vector<Tensor> ParameterSet::gradients(const OptimizerStep& step, const std::vector<size_t>& members) const {
  std::vector<Tensor> all;
  for (const size_t k : members) all.push_back(step.gradients[members_[k].index]);
  return all;
}

std::vector<Tensor> ParameterSet::pieces(const Tensor& flat, const std::vector<size_t>& members) const {
  std::vector<Tensor> all;
  for (const size_t k : members) all.push_back(flat.narrow(0, members_[k].begin, members_[k].flat.numel()));
  return all;
}

std::vector<Tensor> ParameterSet::values(const std::vector<size_t>& members) const {
  std::vector<Tensor> all;
  for (const size_t k : members) all.push_back(members_[k].flat);
  return all;
}

void ParameterSet::append(std::vector<StateTensor>& state, const std::string& kind, const Tensor& flat) const {
  for (const Member& member : members_)
    state.push_back({.kind = kind, .parameter = member.index, .value = piece(member, flat)});
}

void ParameterSet::append_numbers(std::vector<StateTensor>& state, const std::string& kind,
                                  const Tensor& numbers) const {
  std::vector<size_t> owners;
  for (const Member& member : members_) owners.push_back(member.index);
  state.push_back({.kind = kind, .entries = std::move(owners), .value = numbers});
}

const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin) {
  if (const Tensor* tensor = find_value(tensors, name)) return *tensor;
  throw Error(fmt::format("{}: tensor '{}' is missing", origin, name),
              "the file belongs to another optimizer or model");
}

void load_tensor(const NamedTensors& tensors, const std::string& name, const Tensor& into, const std::string& origin) {
  const Tensor& stored = find_tensor(tensors, name, origin);
  if (stored.sizes() != into.sizes()) {
    throw Error(fmt::format("{}: tensor '{}' has {} elements and a different shape from the model's parameter", origin,
                            name, stored.numel()),
                "the file belongs to another configuration");
  }
  into.copy_(stored);
}

std::string kind_of(const std::string& kind, const Parameter& parameter, size_t i) {
  return parameter.parts.empty() ? kind : fmt::format("{}.{}", kind, i);
}

std::vector<Tensor> matrices_of(const Parameter& parameter, const Tensor& whole) {
  return parameter.parts.empty() ? std::vector<Tensor>{whole} : whole.split_with_sizes(parameter.parts, 0);
}

}  // namespace plumb
