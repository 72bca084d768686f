#include "plumb/analysis/norms_by_layer.h"

#include <algorithm>
#include <cmath>

#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"

namespace plumb {

NormsByLayer norms_by_layer(const Parameters& parameters, std::span<const Tensor> pieces) {
  const at::NoGradGuard no_graph;
  NormsByLayer norms;  // squares until the end
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string& parameter = parameters.all()[i].name;
    const std::optional<LayerId> owner = LayerId::of_parameter(parameter);
    const std::string name = owner && owner->layer ? to_string(LayerId{owner->stack, owner->layer}) : parameter;
    const double square = ops::sum_of_squares({pieces[i]});
    auto group = std::find_if(norms.each.begin(), norms.each.end(), [&](const auto& one) { return one.first == name; });
    if (group == norms.each.end()) group = norms.each.insert(group, {name, 0.0});
    group->second += square;
    norms.total += square;
  }
  for (auto& [name, norm] : norms.each) norm = std::sqrt(norm);
  norms.total = std::sqrt(norms.total);
  return norms;
}

}  // namespace plumb
