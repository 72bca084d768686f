#include "plumb/analysis/coordinate_check.h"

#include <utility>

#include "plumb/optim/clipping.h"
#include "plumb/optim/optimizer.h"

namespace plumb {
namespace {

using Activations = std::vector<std::pair<ActivationPoint, Tensor>>;

struct Coordinates {
  Activations activations;
  Tensor logits;
};

/// The activations of a forward pass, in double precision.
Coordinates coordinates_of(Model& model, const Batch& batch) {
  const at::NoGradGuard no_graph;
  Coordinates found;
  ForwardContext context(Pass::measurement);
  context.tap([&](const ActivationPoint& point, const Tensor& x) {
    const bool known = !found.activations.empty() && found.activations.back().first == point;  // a second stream
    if (!known && (point.point == Point::stream || point.point == Point::result))
      found.activations.emplace_back(point, x.to(at::kDouble));
    return x;
  });
  const Tensor logits = model.logits(model.states(batch, context)).to(at::kDouble);
  found.logits = logits - logits.mean(1, true);
  return found;
}

double root_mean_square(const Tensor& x) { return x.square().mean().sqrt().item<double>(); }

CoordinateSize coordinate_size(const ActivationPoint& point, const Tensor& before, const Tensor& after) {
  return {point, root_mean_square(before), root_mean_square(after), root_mean_square(after - before)};
}

}  // namespace

CoordinateSizes measure_coordinates(Model& model, const std::vector<Batch>& steps, const Batch& measured,
                                    const CoordinateOptions& options) {
  const Coordinates before = coordinates_of(model, measured);
  const std::vector<Tensor> values = model.parameters().values();
  const std::unique_ptr<Optimizer> optimizer =
      make_optimizer(options.optimizer, model.parameters(), options.optimizer_options);
  for (const Batch& batch : steps) {
    const at::AutoGradMode with_graph(true);
    ForwardContext context(Pass::training);
    const Loss loss = model.loss(batch, {.label_smoothing = options.label_smoothing}, context);
    const std::vector<Tensor> gradient = gradients({loss.value}, values, {});
    const double clip = options.clip_norm > 0 ? clip_scale(global_norm(gradient), options.clip_norm) : 1;
    optimizer->step(gradient, options.learning_rate, clip);
    model.constrain();
  }
  const Coordinates after = coordinates_of(model, measured);
  CoordinateSizes sizes;
  for (size_t i = 0; i < before.activations.size(); ++i) {
    const auto& [point, x] = before.activations[i];
    sizes.activations.push_back(coordinate_size(point, x, after.activations[i].second));
  }
  sizes.logits = coordinate_size({}, before.logits, after.logits);
  return sizes;
}

}  // namespace plumb
