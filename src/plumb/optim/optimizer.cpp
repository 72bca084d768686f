#include "plumb/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/ops/update.h"
#include "plumb/optim/update.h"

namespace plumb {

Registry<OptimizerFactory>& optimizers() {
  static Registry<OptimizerFactory> registry("optimizer");
  return registry;
}

double global_norm(const std::vector<Tensor>& gradients) { return std::sqrt(ops::sum_of_squares(gradients)); }

double clip_scale(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1.0; }

void append_pieces(NamedTensors& tensors, const std::string& prefix, const Parameters& parameters, const Tensor& flat) {
  const std::vector<Tensor> pieces = parameters.split(flat);
  for (size_t i = 0; i < pieces.size(); ++i) tensors.emplace_back(prefix + parameters.all()[i].name, pieces[i]);
}

void load_pieces(const NamedTensors& tensors, const std::string& prefix, const Parameters& parameters,
                 const Tensor& flat, const std::string& origin) {
  const std::vector<Tensor> pieces = parameters.split(flat);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string name = prefix + parameters.all()[i].name;
    const Tensor& found = find_tensor(tensors, name, origin);
    if (found.sizes() != pieces[i].sizes()) {
      throw Error(fmt::format("{}: tensor '{}' has {} elements in another shape than the model's parameter", origin,
                              name, found.numel()),
                  "the file belongs to another configuration");
    }
    pieces[i].copy_(found);
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
