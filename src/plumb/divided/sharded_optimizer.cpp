#include "plumb/divided/sharded_optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {
std::vector<size_t> split_evenly(const Parameters& parameters, int64_t ranks) {
  std::vector<int64_t> before{0};  // elements
  for (const Parameter& parameter : parameters.all()) before.push_back(before.back() + parameter.value.numel());
  std::vector<size_t> begins{0};
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const double target = static_cast<double>(before.back()) * static_cast<double>(rank) / static_cast<double>(ranks);
    const auto distance = [&](int64_t elements) { return std::abs(static_cast<double>(elements) - target); };
    const auto nearest = std::min_element(before.begin() + static_cast<std::ptrdiff_t>(begins.back()), before.end(),
                                          [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
    begins.push_back(static_cast<size_t>(nearest - before.begin()));
  }
  begins.push_back(parameters.all().size());
  return begins;
}

ShardedOptimizer::ShardedOptimizer(const Parameters& parameters, Factory factory)
    : PartialOptimizer(parameters), factory_(std::move(factory)), begins_(split_evenly(parameters, 1)) {
  std::unique_ptr<Optimizer> full = factory_(parameters);
  set_layout(full->state_tensors());
  set_part(parameters_of(0), std::move(full));
}

std::vector<size_t> ShardedOptimizer::parameters_of(int64_t rank) const {
  const size_t first = begins_[static_cast<size_t>(rank)], last = begins_[static_cast<size_t>(rank) + 1];
  std::vector<size_t> indices(last - first);
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

void ShardedOptimizer::distribute(const Group& group) {
  if (group.size() == 1) return;
  const NamedTensors full = state();
  group_ = group;
  begins_ = split_evenly(parameters(), group.size());
  const std::vector<size_t> own = parameters_of(group.rank());
  set_part(own, factory_(parameters().subset(own)));
  load_state(full, "the state of all parameters");
}

void ShardedOptimizer::update(const OptimizerStep& step) {
  drop_collected();
  std::vector<Tensor> gradients;
  std::vector<ParameterStep> settings;
  for (const size_t i : own()) {
    gradients.push_back(step.gradients[i]);
    settings.push_back(step.parameters[i]);
  }
  inner().step(gradients, settings, step.gradient_scale);
  if (group_.size() == 1) return;
  for (int64_t rank = 0; rank < group_.size(); ++rank)
    group_.broadcast(parameters().subset(parameters_of(rank)).flat(), rank);
}

void ShardedOptimizer::exchange(size_t parameter, const Tensor& x) {
  group_.broadcast(x, std::upper_bound(begins_.begin(), begins_.end() - 1, parameter) - begins_.begin() - 1);
}

void ShardedOptimizer::collect() {
  if (group_.size() > 1) collect_full(group_.rank() == 0);
}

std::vector<StateTensor> ShardedOptimizer::state_tensors() const {
  if (group_.size() == 1) return inner().state_tensors();
  std::vector<StateTensor> collected = PartialOptimizer::state_tensors();
  if (collected.empty()) throw Error("the optimizer's state is sharded across the processes");
  return collected;
}

int64_t ShardedOptimizer::state_size() const {
  int64_t elements = 0;
  for (const StateTensor& tensor : inner().state_tensors()) elements += tensor.value.numel();
  return elements;
}

std::optional<Preconditioning> ShardedOptimizer::preconditioning() const {
  if (group_.size() > 1) return std::nullopt;
  return inner().preconditioning();
}

}  // namespace plumb
