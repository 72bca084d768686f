#include "plumb/analysis/update_ratio.h"

#include <algorithm>
#include <cmath>

#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"

namespace plumb {
namespace {

std::string group_of(const std::string& parameter) {
  const std::optional<LayerId> owner = LayerId::of_parameter(parameter);
  return owner && owner->layer ? to_string(LayerId{owner->stack, owner->layer}) : parameter;
}

}  // namespace

std::vector<std::pair<std::string, double>> norms_by_layer(const Parameters& parameters,
                                                           std::span<const Tensor> pieces) {
  const at::NoGradGuard no_graph;
  std::vector<std::pair<std::string, double>> norms;  // squares until the end
  double total = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string name = group_of(parameters.all()[i].name);
    const double square = ops::sum_of_squares({pieces[i]});
    auto group = std::find_if(norms.begin(), norms.end(), [&](const auto& each) { return each.first == name; });
    if (group == norms.end()) group = norms.insert(group, {name, 0.0});
    group->second += square;
    total += square;
  }
  norms.emplace_back("total", total);
  for (auto& [name, norm] : norms) norm = std::sqrt(norm);
  return norms;
}

std::vector<UpdateRatio> update_ratios(const Parameters& parameters, const Tensor& before, const Tensor& after) {
  const at::NoGradGuard no_graph;
  const std::vector<Tensor> old_values = parameters.split(before), new_values = parameters.split(after);
  std::vector<UpdateRatio> ratios;  // squares until the end
  UpdateRatio total{"total"};
  for (size_t i = 0; i < old_values.size(); ++i) {
    const std::string name = group_of(parameters.all()[i].name);
    const double update = ops::sum_of_squares({new_values[i] - old_values[i]});
    const double weight = ops::sum_of_squares({old_values[i]});
    auto group = std::find_if(ratios.begin(), ratios.end(), [&](const UpdateRatio& each) { return each.name == name; });
    if (group == ratios.end()) group = ratios.insert(group, {name});
    group->update += update;
    group->weight += weight;
    total.update += update;
    total.weight += weight;
  }
  ratios.push_back(total);
  for (UpdateRatio& each : ratios) {
    each.update = std::sqrt(each.update);
    each.weight = std::sqrt(each.weight);
  }
  return ratios;
}

}  // namespace plumb
