#include "plumb/analysis/coordinate_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "plumb/base/error.h"
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

std::string to_string(Trend trend) {
  constexpr std::array<const char*, 5> kNames = {"grows", "constant", "shrinks", "undecided", "diverged"};
  return kNames.at(static_cast<size_t>(trend));
}

ScalingExponent scaling_exponent(const std::vector<double>& scales, const std::vector<std::vector<double>>& sizes,
                                 double margin) {
  if (scales.size() < 2 || sizes.empty()) throw Error("an exponent needs at least two scales and one seed");
  std::vector<double> x;
  for (const double scale : scales) x.push_back(std::log(scale));
  std::vector<double> slopes;
  std::vector<double> ends;
  for (const std::vector<double>& of_seed : sizes) {
    if (of_seed.size() != scales.size()) throw Error("an exponent needs one size for each scale");
    std::vector<double> y;
    for (const double size : of_seed) y.push_back(std::log(size));
    if (!std::all_of(y.begin(), y.end(), [](double value) { return std::isfinite(value); })) {
      constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
      return {{kNone, kNone, kNone, std::ssize(sizes)}, kNone, Trend::diverged};
    }
    slopes.push_back(fit_line(x, y).slope);
    const size_t last = scales.size() - 1;
    ends.push_back((y[last] - y[last - 1]) / (x[last] - x[last - 1]));
  }
  ScalingExponent found{confidence_interval(slopes), confidence_interval(ends).mean, Trend::undecided};
  const auto [mean, low, high, count] = found.exponent;
  if (count > 1) {
    if (low > margin) found.trend = Trend::grows;
    if (high < -margin) found.trend = Trend::shrinks;
    if (low >= -margin && high <= margin) found.trend = Trend::constant;
  }
  return found;
}

}  // namespace plumb
