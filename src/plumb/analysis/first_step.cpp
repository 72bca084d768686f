#include "plumb/analysis/first_step.h"

#include <algorithm>
#include <cmath>

#include "plumb/analysis/batch_share.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/logit_jacobian.h"
#include "plumb/analysis/result_fields.h"
#include "plumb/base/error.h"
#include "plumb/optim/optimizer.h"

namespace plumb {
namespace {

/// The blocks of the layers, and the parameters that belong to none.
std::vector<std::pair<std::optional<LayerId>, std::vector<size_t>>> places_by_layer(const Parameters& parameters) {
  std::vector<std::pair<std::optional<LayerId>, std::vector<size_t>>> groups;
  std::vector<size_t> outside = all_places(parameters);
  for (const ParameterBlock& block : layer_blocks(parameters)) {
    groups.emplace_back(block.id, block.places);
    outside.erase(std::remove_if(outside.begin(), outside.end(),
                                 [&](size_t place) {
                                   return std::binary_search(block.places.begin(), block.places.end(), place);
                                 }),
                  outside.end());
  }
  groups.emplace_back(std::nullopt, std::move(outside));
  return groups;
}

/// A copy of the parameters, without buffers.
Parameters in_float64(const Parameters& parameters) {
  Parameters wide(at::kDouble, parameters.device());
  for (const Parameter& each : parameters.all()) {
    if (each.parts.empty())
      wide.add(each.name, each.value.sizes(), each.role);
    else
      wide.add_stacked(each.name, each.value.sizes(), each.parts, each.role);
  }
  wide.allocate();
  const at::NoGradGuard no_graph;
  wide.flat().copy_(parameters.flat());
  return wide;
}

double centered_square(const Tensor& change) {
  const Tensor wide = change.to(at::kDouble);
  return (wide - wide.mean(1, true)).square().sum().item<double>();
}

}  // namespace

void describe(Fields& field, LogitChange& change) {
  describe_place(field, "layer", change.layer);
  field("change", change.change);
}

Tensor first_update(const Parameters& parameters, const Tensor& gradient, const std::string& optimizer,
                    const VariantOptions& options) {
  const Parameters wide = in_float64(parameters);
  const std::vector<Tensor> gradients = wide.split(gradient.detach().to(at::kDouble));
  const std::unique_ptr<Optimizer> steps = make_optimizer(optimizer, wide, options);
  for (int64_t i = steps->beginning().preparatory_steps; i > 0; --i) steps->step(gradients, 0.0);
  const at::NoGradGuard no_graph;
  const Tensor before = wide.flat().clone();
  // The step is proportional to the rate. A large one, a power of two, keeps the step's digits in w − η·u.
  constexpr double kRate = 1 << 20;
  steps->step(gradients, kRate);
  return ((before - wide.flat()) / kRate).to(parameters.type());
}

LogitChanges measure_logit_changes(Model& model, const std::vector<Batch>& batches, const Tensor& update,
                                   const Group& group) {
  const auto groups = places_by_layer(model.parameters());
  const std::vector<Tensor> pieces = model.parameters().split(update);
  std::vector<double> squares(groups.size(), 0);
  double total = 0;
  double elements = 0;
  for (const Batch& batch : share_of_batches(batches, group)) {
    const OutputJacobian jacobian = logit_jacobian(model, batch);
    Tensor sum;
    for (size_t i = 0; i < groups.size(); ++i) {
      std::vector<Tensor> some;
      for (const size_t place : groups[i].second) some.push_back(pieces[place]);
      const Tensor change = jacobian.times(groups[i].second, some);
      squares[i] += centered_square(change);
      sum = sum.defined() ? sum + change : change;
    }
    total += centered_square(sum);
    elements += static_cast<double>(sum.numel());
  }
  squares = group.sums(squares);
  const std::vector<double> sums = group.sums({total, elements});
  total = sums[0];
  elements = sums[1];
  if (elements == 0) throw Error("no labels to measure logits of");
  LogitChanges changes;
  for (size_t i = 0; i < groups.size(); ++i)
    changes.by_layer.push_back({groups[i].first, std::sqrt(squares[i] / elements)});
  changes.total = std::sqrt(total / elements);
  return changes;
}

LogitChangesReport summarize(const std::vector<LogitChanges>& measurements) {
  if (measurements.empty()) throw Error("no changes of logits to summarize");
  const auto over = [&](const auto& number) { return geometric_interval(numbers_in(measurements, number)); };
  LogitChangesReport report;
  for (size_t i = 0; i < measurements.front().by_layer.size(); ++i) {
    report.by_layer.push_back({measurements.front().by_layer[i].layer,
                               over([&](const LogitChanges& each) { return each.by_layer[i].change; })});
  }
  report.total = over([](const LogitChanges& each) { return each.total; });
  return report;
}

}  // namespace plumb
