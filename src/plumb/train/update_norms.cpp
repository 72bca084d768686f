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
  std::vector<std::pair<int64_t, int64_t>> ranges;  // (begin, count)
  int64_t count = 0;

  /// The position of its i-th element in the flat buffer.
  [[nodiscard]] int64_t place(int64_t i) const {
    for (const auto& [begin, size] : ranges) {
      if (i < size) return begin + i;
      i -= size;
    }
    return 0;
  }
};

std::vector<UpdateGroup> update_groups(const Parameters& parameters) {
  std::vector<UpdateGroup> groups;
  int64_t begin = 0;
  for (const Parameter& parameter : parameters.all()) {
    const std::optional<LayerId> layer = LayerId::of_parameter(parameter.name);
    const std::string name = layer && layer->layer ? to_string(*layer) : parameter.name;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const UpdateGroup& each) { return each.name == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}, 0});
    group->ranges.emplace_back(begin, parameter.value.numel());
    group->count += parameter.value.numel();
    begin += parameter.value.numel();
  }
  std::erase_if(groups, [](const UpdateGroup& group) { return group.count == 0; });
  return groups;
}

}  // namespace

UpdateNorms::UpdateNorms(const Parameters& parameters, int64_t samples) : flat_(parameters.flat().detach()) {
  const std::vector<UpdateGroup> groups = update_groups(parameters);
  int64_t width = 0;
  for (const UpdateGroup& group : groups) width = std::max(width, std::min(group.count, samples));
  std::vector<int64_t> places;
  std::vector<double> weights;
  for (const UpdateGroup& group : groups) {
    names_.push_back(group.name);
    const int64_t sampled = std::min(group.count, width);
    Random random(0, group.name);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t from = j * group.count / sampled, to = (j + 1) * group.count / sampled;
      const bool used = j < sampled;
      places.push_back(used ? group.place(from + static_cast<int64_t>(random.below(static_cast<uint64_t>(to - from))))
                            : group.place(0));
      weights.push_back(used ? static_cast<double>(group.count) / static_cast<double>(sampled) : 0.0);
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

std::vector<ops::Number> UpdateNorms::square_norms() const {
  const at::NoGradGuard no_graph;
  const Tensor sums = (sample() - before_).square_().view(weights_.sizes()).mul_(weights_).sum(1, false, at::kDouble);
  std::vector<ops::Number> found;
  for (const Tensor& each : sums.unbind()) found.emplace_back(each);
  return found;
}

}  // namespace plumb
