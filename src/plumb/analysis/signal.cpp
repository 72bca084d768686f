#include "plumb/analysis/signal.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>
#include <string_view>

#include "plumb/analysis/statistics.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

/// "encoder.layers.3.feed_forward.sum" → 4; 0 outside of layers.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view marker = ".layers.";
  const size_t found = name.find(marker);
  if (found == std::string_view::npos) return 0;
  int64_t layer = 0;
  std::from_chars(name.data() + found + marker.size(), name.data() + name.size(), layer);
  return layer + 1;
}

std::vector<double> to_vector(const Tensor& values) {
  const Tensor flat = values.cpu().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

const LayerPoint& SignalProfile::at(const std::string& name) const {
  std::vector<std::string> names;
  for (const LayerPoint& point : points) {
    if (point.name == name) return point;
    names.push_back(point.name);
  }
  throw Error(fmt::format("no activation is called '{}'", name),
              fmt::format("did you mean '{}'?", nearest(name, names)));
}

void SignalMeter::see(const std::string& name, const Tensor& activation) {
  const at::NoGradGuard no_graph;
  const auto [entry, is_new] = index_.emplace(name, points_.size());
  if (is_new) points_.push_back({name, {}, 0});
  Samples& samples = points_[entry->second];
  const Tensor x = activation.detach().to(at::kDouble);
  const Tensor square = x.square().sum(1);
  const Tensor centered = (x - x.mean(1, true)).square().sum(1);
  samples.ratio_sum += (square / centered).sqrt().sum().item<double>();
  const std::vector<double> values = to_vector(square);
  samples.square.insert(samples.square.end(), values.begin(), values.end());
}

SignalProfile SignalMeter::profile() const {
  SignalProfile profile;
  for (const Samples& samples : points_) {
    if (samples.square.empty()) continue;
    const auto tokens = static_cast<double>(samples.square.size());
    LayerPoint point;
    point.name = samples.name;
    point.layer = layer_of(samples.name);
    point.mean_square = std::accumulate(samples.square.begin(), samples.square.end(), 0.0) / tokens;
    point.delta_at_0_1 = bounded_delta(samples.square, 0.1);
    point.epsilon_at_0_125 = bounded_epsilon(samples.square, 0.125);
    point.layer_norm_ratio = samples.ratio_sum / tokens;
    profile.points.push_back(point);
  }
  return profile;
}

SignalProfile measure_signal(Model& model, const std::vector<Batch>& batches) {
  const at::NoGradGuard no_graph;
  SignalMeter meter;
  ForwardContext context(Pass::measurement);
  context.watch([&meter](const std::string& name, const Tensor& activation) { meter.see(name, activation); });
  for (const Batch& batch : batches) model.states(batch, context);
  return meter.profile();
}

}  // namespace plumb
