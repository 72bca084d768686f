#include "plumb/analysis/signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plumb/analysis/common_points.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

std::vector<double> to_vector(const Tensor& values) {
  const Tensor flat = values.cpu().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

const LayerPoint* SignalProfile::find(const ActivationPoint& point) const {
  return find_by(points, &LayerPoint::point, point);
}

const LayerPoint& SignalProfile::at(const ActivationPoint& point) const {
  if (const LayerPoint* found = find(point)) return *found;
  std::vector<std::string> names;
  for (const LayerPoint& each : points) names.push_back(to_string(each.point));
  const std::string name = to_string(point);
  throw Error(fmt::format("unknown activation '{}'", name), did_you_mean(name, names));
}

void SignalMeter::see(const ActivationPoint& point, const Tensor& activation) {
  const at::NoGradGuard no_graph;
  const auto [entry, is_new] = index_.emplace(point, points_.size());
  if (is_new) points_.push_back({point, {}, 0});
  Samples& samples = points_[entry->second];
  const Tensor x = activation.detach().to(at::kDouble);
  const Tensor square = x.square().sum(1);
  const Tensor centered = (x - x.mean(1, true)).square().sum(1);
  samples.ratio_sum += (square / centered).sqrt().sum().item<double>();
  const std::vector<double> values = to_vector(square);
  samples.square.insert(samples.square.end(), values.begin(), values.end());
}

void SignalMeter::add_all(const Group& group) {
  if (group.size() == 1) return;
  std::vector<ActivationPoint> own;
  for (const Samples& samples : points_) own.push_back(samples.point);
  const std::vector<ActivationPoint> all = common_points(own, group);
  for (size_t i = points_.size(); i < all.size(); ++i) {
    index_.emplace(all[i], i);
    points_.push_back({all[i], {}, 0});
  }
  // Each process writes its samples at their place among all samples, and 0 elsewhere, so that the sum is exact.
  const Tensor counts = at::zeros({std::ssize(points_)}, at::kLong);
  std::vector<double> ratio_sums;
  for (size_t i = 0; i < points_.size(); ++i) {
    counts.data_ptr<int64_t>()[i] = std::ssize(points_[i].square);
    ratio_sums.push_back(points_[i].ratio_sum);
  }
  ratio_sums = group.sums(ratio_sums);
  const std::vector<Tensor> counts_of_ranks = group.all_gather(counts);
  for (size_t i = 0; i < points_.size(); ++i) {
    int64_t before = 0, total = 0;
    for (int64_t rank = 0; rank < group.size(); ++rank) {
      if (rank == group.rank()) before = total;
      total += counts_of_ranks[static_cast<size_t>(rank)].data_ptr<int64_t>()[i];
    }
    std::vector<double> square(static_cast<size_t>(total), 0.0);
    std::copy(points_[i].square.begin(), points_[i].square.end(), square.begin() + before);
    points_[i].square = group.sums(square);
    points_[i].ratio_sum = ratio_sums[i];
  }
}

SignalProfile SignalMeter::profile() const {
  SignalProfile profile;
  for (const Samples& samples : points_) {
    if (samples.square.empty()) continue;
    const auto tokens = static_cast<double>(samples.square.size());
    LayerPoint point;
    point.point = samples.point;
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
  context.watch([&meter](const ActivationPoint& point, const Tensor& activation) { meter.see(point, activation); });
  for (const Batch& batch : batches) model.states(batch, context);
  return meter.profile();
}

}  // namespace plumb
