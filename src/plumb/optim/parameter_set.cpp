#include "plumb/optim/parameter_set.h"

#include <fmt/format.h>

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

void ParameterSet::append(NamedTensors& tensors, const std::string& prefix, const Tensor& flat) const {
  for (const Member& member : members_) tensors.emplace_back(prefix + "." + member.parameter.name, piece(member, flat));
}

void ParameterSet::load(const NamedTensors& tensors, const std::string& prefix, const Tensor& flat,
                        const std::string& origin) const {
  for (const Member& member : members_) {
    const std::string name = prefix + "." + member.parameter.name;
    const Tensor& found = find_tensor(tensors, name, origin);
    const Tensor own = piece(member, flat);
    if (found.sizes() != own.sizes()) {
      throw Error(fmt::format("{}: tensor '{}' has {} elements in another shape than the model's parameter", origin,
                              name, found.numel()),
                  "the file belongs to another configuration");
    }
    own.copy_(found);
  }
}

const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == tensors.end()) {
    throw Error(fmt::format("{}: tensor '{}' is missing", origin, name),
                "the file belongs to another optimizer or model");
  }
  return found->second;
}

}  // namespace plumb
