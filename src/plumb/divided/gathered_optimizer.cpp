#include "plumb/divided/gathered_optimizer.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace plumb {
namespace {

int64_t elements_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// The rank of each parameter's owner: the largest parameters first, each to the rank that has least so far.
std::vector<int64_t> assigned(const Parameters& shards, const LayerDivision& division) {
  std::vector<size_t> order(shards.all().size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size = [&](size_t i) { return elements_of(division.full_sizes(i)); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size(a) > size(b); });
  std::vector<int64_t> owners(order.size()), loads(static_cast<size_t>(division.ranks()));
  for (const size_t i : order) {
    if (shards.all()[i].value.numel() == 0) continue;  // another stage's
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += size(i);
    owners[i] = least - loads.begin();
  }
  return owners;
}

std::vector<size_t> owned(const Parameters& shards, const std::vector<int64_t>& owners, int64_t rank) {
  std::vector<size_t> own;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (shards.all()[i].value.numel() > 0 && owners[i] == rank) own.push_back(i);
  }
  return own;
}

/// Memory for the full values of these parameters; they are the shards if layers are not divided.
Parameters full_parameters(const Parameters& shards, const LayerDivision& division, const std::vector<size_t>& own) {
  const Parameters subset = shards.subset(own);
  if (division.ranks() == 1) return subset.with_values(subset.values(), shards.flat());
  int64_t count = 0;
  for (const size_t i : own) count += elements_of(division.full_sizes(i));
  const Tensor flat = at::zeros({count}, shards.options());
  std::vector<Tensor> values;
  int64_t begin = 0;
  for (const size_t i : own) {
    values.push_back(flat.narrow(0, begin, elements_of(division.full_sizes(i))).view(division.full_sizes(i)));
    begin += values.back().numel();
  }
  return subset.with_values(values, flat);
}

}  // namespace

GatheredOptimizer::GatheredOptimizer(const Parameters& shards, const LayerDivision& division, const Factory& factory,
                                     const std::vector<StateTensor>& layout)
    : PartialOptimizer(shards), division_(&division), owners_(assigned(shards, division)), full_(shards) {
  std::vector<size_t> own = owned(shards, owners_, division.group().rank());
  full_ = full_parameters(shards, division, own);
  set_layout(layout);
  set_part(std::move(own), factory(full_));
}

void GatheredOptimizer::update(const OptimizerStep& step) {
  drop_collected();
  const int64_t rank = division_->group().rank();
  std::vector<Tensor> gradients;
  std::vector<ParameterStep> settings;
  const auto for_each_used = [&](const auto& work) {
    for (size_t i = 0, k = 0; i < parameters().all().size(); ++i) {
      if (const Tensor value = parameters().all()[i].value.detach(); value.numel() > 0)
        work(i, value, owners_[i] == rank ? full_.all()[k++].value.detach() : Tensor());
    }
  };
  for_each_used([&](size_t i, const Tensor& value, const Tensor& full) {
    const Tensor gradient = division_->gather(i, step.gradients[i], owners_[i]);
    const Tensor full_value = division_->gather(i, value, owners_[i]);
    if (!full.defined()) return;
    if (!full.is_alias_of(value)) full.copy_(full_value);
    gradients.push_back(gradient);
    settings.push_back(step.parameters[i]);
  });
  inner().step(gradients, settings, step.gradient_scale);
  if (division_->ranks() == 1) return;
  for_each_used(
      [&](size_t i, const Tensor& value, const Tensor& full) { division_->scatter(i, full, value, owners_[i]); });
}

void GatheredOptimizer::distribute(const Group& group) {
  data_ = group;
  inner().distribute(group);
}

void GatheredOptimizer::exchange(size_t parameter, const Tensor& x) {
  division_->send_to_first(parameter, x, owners_[parameter]);
}

void GatheredOptimizer::sum(const Tensor& x) {
  division_->group().sum(x);
  division_->pipeline().sum(x);
}

void GatheredOptimizer::collect() {
  inner().collect();
  drop_collected();
  if (data_.rank() == 0) collect_full(division_->is_first());
}

}  // namespace plumb
