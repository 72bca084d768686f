#include "plumb/analysis/branch_stream.h"

#include <cmath>

#include "plumb/analysis/batch_share.h"
#include "plumb/analysis/common_points.h"
#include "plumb/analysis/token_similarity.h"

namespace plumb {
namespace {

double product(const Tensor& a, const Tensor& b) { return (a * b).sum().item<double>(); }

}  // namespace

void BranchMeter::begin(const Ragged& encoder, const Ragged& decoder) {
  streams_[StackKind::encoder] = {encoder};
  streams_[StackKind::decoder] = {decoder};
}

void BranchMeter::see(const ActivationPoint& point, const Tensor& activation) {
  const at::NoGradGuard no_graph;
  const auto& [id, what] = point;
  Stream& stream = streams_.at(id.stack);
  const auto wide = [&] { return activation.detach().to(at::kDouble); };
  if (!id.layer && what == Point::input) {
    stream.x = wide();
    stream.cosines = sum_of_cosines(stream.x, stream.layout);
  }
  if (!id.sub_layer || !stream.x.defined()) return;
  if (what == Point::output) stream.output = wide();
  if (what == Point::sum) stream.sum = wide();
  if (what == Point::stream) finish(id, stream, wide());
}

void BranchMeter::finish(const LayerId& id, Stream& stream, const Tensor& after) {
  const ActivationPoint point{id, Point::stream};
  const auto [entry, is_new] = sums_.try_emplace(point);
  if (is_new) order_.push_back(point);
  Sums& sums = entry->second;
  const Tensor& sum = stream.sum.defined() ? stream.sum : after;
  sums.xx += product(stream.x, stream.x);
  sums.ff += product(stream.output, stream.output);
  sums.xf += product(stream.x, stream.output);
  sums.sx += product(sum, stream.x);
  sums.sf += product(sum, stream.output);
  sums.cosines_before += stream.cosines;
  stream.x = after;
  stream.cosines = sum_of_cosines(after, stream.layout);
  stream.output = stream.sum = Tensor();
  sums.cosines += stream.cosines;
  sums.pairs += pairs_of_tokens(stream.layout);
}

void BranchMeter::add_all(const Group& group) {
  if (group.size() == 1) return;
  order_ = common_points(order_, group);
  for (const ActivationPoint& point : order_) {
    Sums& own = sums_[point];
    const std::vector<double> all =
        group.sums({own.xx, own.ff, own.xf, own.sx, own.sf, own.cosines_before, own.cosines, own.pairs});
    own = {all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7]};
  }
}

std::vector<BranchPoint> BranchMeter::points() const {
  std::vector<BranchPoint> points;
  for (const ActivationPoint& point : order_) {
    const Sums& sums = sums_.at(point);
    // The normal equations, without their common divisor.
    const double a = sums.sx * sums.ff - sums.sf * sums.xf;
    const double b = sums.sf * sums.xx - sums.sx * sums.xf;
    points.push_back({point.id, std::abs(b / a) * std::sqrt(sums.ff / sums.xx), sums.cosines_before / sums.pairs,
                      sums.cosines / sums.pairs});
  }
  return points;
}

std::vector<BranchPoint> measure_branches(Model& model, const std::vector<Batch>& batches, const Group& group) {
  const at::NoGradGuard no_graph;
  BranchMeter meter;
  ForwardContext context(Pass::measurement);
  context.watch([&meter](const ActivationPoint& point, const Tensor& activation) { meter.see(point, activation); });
  for (const Batch& batch : share_of_batches(batches, group)) {
    meter.begin(batch.source_layout, batch.target_layout);
    model.states(batch, context);
  }
  meter.add_all(group);
  return meter.points();
}

}  // namespace plumb
