#include "plumb/train/update_norms.h"

#include <algorithm>
#include <utility>

#include "plumb/base/random.h"
#include "plumb/nn/layer_id.h"

namespace plumb {
namespace {

/// A group of parameters, as ranges of the flat buffer.
struct UpdateGroup {
  std::string name;
  struct Range {
    int64_t begin, count;
    double weight;  // 1/(the number of processes that have it), or 0 in all stages of a pipeline but the first of them
  };
  std::vector<Range> ranges;
  int64_t count = 0;
  bool table = false;

  /// The position of its i-th element in the flat buffer, and the element's weight.
  [[nodiscard]] std::pair<int64_t, double> place(int64_t i) const {
    for (const Range& range : ranges) {
      if (i < range.count) return {range.begin + i, range.weight};
      i -= range.count;
    }
    return {0, 0};
  }
};

std::vector<UpdateGroup> update_groups(const Parameters& parameters, const LayerDivision* division) {
  std::vector<UpdateGroup> groups;
  int64_t begin = 0;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    const bool common = division != nullptr && !division->is_divided(i);
    const std::optional<LayerId> layer = LayerId::of_parameter(parameter.name);
    const std::string name = layer && layer->layer ? to_string(*layer) : parameter.name;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const UpdateGroup& each) { return each.name == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}, 0});
    const double counted = division == nullptr || division->counts(i) ? 1 : 0;
    group->ranges.push_back(
        {begin, parameter.value.numel(), common ? counted / static_cast<double>(division->group().size()) : counted});
    group->count += parameter.value.numel();
    group->table = !(layer && layer->layer) && (parameter.role == Role::embedding || parameter.role == Role::position);
    begin += parameter.value.numel();
  }
  if (division == nullptr) std::erase_if(groups, [](const UpdateGroup& group) { return group.count == 0; });
  return groups;
}

}  // namespace

UpdateNorms::UpdateNorms(const Parameters& parameters, int64_t samples, const LayerDivision* division,
                         const ParameterShards* shards)
    : flat_((shards != nullptr ? shards->local() : parameters).flat().detach()) {
  const std::vector<UpdateGroup> groups = update_groups(parameters, division);
  int64_t width = 0;
  for (const UpdateGroup& group : groups) width = std::max(width, std::min(group.count, samples));
  std::vector<int64_t> places;
  std::vector<double> weights;
  for (const UpdateGroup& group : groups) {
    series_.push_back({group.name, group.table});
    const int64_t sampled = std::min(group.count, width);  // 0: the group belongs to another stage
    Random random(0, group.name);
    for (int64_t j = 0; j < width; ++j) {
      const bool used = j < sampled;
      const int64_t from = used ? j * group.count / sampled : 0, to = used ? (j + 1) * group.count / sampled : 0;
      const auto [place, weight] =
          group.place(used ? from + static_cast<int64_t>(random.below(static_cast<uint64_t>(to - from))) : 0);
      const int64_t found = shards != nullptr ? shards->index_in_local(place) : place;
      places.push_back(std::max<int64_t>(found, 0));
      weights.push_back(used && found >= 0 ? weight * static_cast<double>(group.count) / static_cast<double>(sampled)
                                           : 0.0);
    }
  }
  places_ = at::tensor(places, at::kLong).to(flat_.device());
  weights_ = at::tensor(weights, at::kDouble)
                 .to(flat_.options())
                 .view({static_cast<int64_t>(groups.size()), groups.empty() ? 0 : width});
}

Tensor UpdateNorms::sample() const {
  const at::NoGradGuard no_graph;
  return flat_.index_select(0, places_);
}

void UpdateNorms::before_step() { before_ = sample(); }

std::vector<ops::DeviceScalar> UpdateNorms::square_norms() const {
  const at::NoGradGuard no_graph;
  const Tensor sums = (sample() - before_).square_().view(weights_.sizes()).mul_(weights_).sum(1, false, at::kDouble);
  std::vector<ops::DeviceScalar> found;
  for (const Tensor& each : sums.unbind()) found.emplace_back(each);
  return found;
}

}  // namespace plumb
