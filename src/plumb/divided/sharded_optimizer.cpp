#include "plumb/divided/sharded_optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {
namespace {

std::vector<size_t> range_of(size_t begin, size_t end) {
  std::vector<size_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

/// The rank of each parameter's owner: the largest parameters first, each to the rank that has least so far.
std::vector<int64_t> owners_among(const Parameters& shards, const LayerDivision& division) {
  std::vector<size_t> order = range_of(0, shards.all().size());
  const auto size = [&](size_t i) { return c10::multiply_integers(division.full_sizes(i)); };
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

/// Memory for the full values of these parameters; they are the shards if layers are not divided.
Parameters full_parameters(const Parameters& shards, const LayerDivision& division, const std::vector<size_t>& own) {
  const Parameters subset = shards.subset(own);
  if (division.ranks() == 1) return subset.with_values(subset.values(), shards.flat());
  int64_t count = 0;
  for (const size_t i : own) count += c10::multiply_integers(division.full_sizes(i));
  const Tensor flat = at::zeros({count}, shards.options());
  std::vector<Tensor> values;
  int64_t begin = 0;
  for (const size_t i : own) {
    values.push_back(
        flat.narrow(0, begin, c10::multiply_integers(division.full_sizes(i))).view(division.full_sizes(i)));
    begin += values.back().numel();
  }
  return subset.with_values(values, flat);
}

/// Where the entry of a parameter is in a tensor with entries of these ones.
int64_t place_of(size_t parameter, const StateTensor& full) {
  return std::lower_bound(full.entries->begin(), full.entries->end(), parameter) - full.entries->begin();
}

}  // namespace

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

Parameters shapes_of(const Parameters& parameters, const LayerDivision* division) {
  const at::TensorOptions nowhere = parameters.options().device(at::kMeta);
  std::vector<Tensor> values;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const at::IntArrayRef sizes = parameters.all()[i].value.sizes();
    values.push_back(at::empty(division != nullptr ? at::IntArrayRef(division->full_sizes(i)) : sizes, nowhere));
  }
  return parameters.with_values(values, at::empty({parameters.count()}, nowhere));
}

ShardedOptimizer::ShardedOptimizer(const Parameters& parameters, const Group& data, const Factory& factory,
                                   const LayerDivision* division)
    : WrappedOptimizer(parameters, nullptr),
      division_(division),
      data_(data),
      candidates_(range_of(0, parameters.all().size())),
      full_(parameters),
      layout_(factory(shapes_of(parameters, division))->state_tensors()) {
  if (division != nullptr) {
    owners_ = owners_among(parameters, *division);
    std::erase_if(candidates_, [&](size_t i) {
      return parameters.all()[i].value.numel() == 0 || owners_[i] != division->group().rank();
    });
    full_ = full_parameters(parameters, *division, candidates_);
  }
  begins_ = split_evenly(full_, data.size());
  const std::vector<size_t> indices = indices_of(data.rank());
  for (const size_t k : indices) own_.push_back(candidates_[k]);
  replace_inner(factory(full_.subset(indices)));
}

ShardedOptimizer::ShardedOptimizer(const ParameterShards& shards, const Factory& factory)
    : WrappedOptimizer(shards.local(), factory(shards.local())),
      shards_(&shards),
      full_(shards.local()),
      own_(range_of(0, shards.local().all().size())) {}

std::vector<size_t> ShardedOptimizer::indices_of(int64_t rank) const {
  const auto r = static_cast<size_t>(rank);
  return range_of(begins_[r], begins_[r + 1]);
}

void ShardedOptimizer::update(const OptimizerStep& step) {
  if (shards_ != nullptr) {
    inner().step(step.gradients, step.parameters, step.gradient_scale);
    return shards_->all_gather();
  }
  // Of a divided model: work(i, shard, full value if this rank of the division's group owns it).
  const auto for_each_used = [&](const auto& work) {
    for (size_t i = 0, k = 0; division_ != nullptr && i < parameters().all().size(); ++i) {
      if (const Tensor value = parameters().all()[i].value.detach(); value.numel() > 0)
        work(i, value, owners_[i] == division_->group().rank() ? full_.all()[k++].value.detach() : Tensor());
    }
  };
  std::vector<Tensor> gradients = step.gradients, own_gradients;
  for_each_used([&](size_t i, const Tensor& value, const Tensor& full) {
    gradients[i] = division_->gather(i, step.gradients[i], owners_[i]);
    const Tensor full_value = division_->gather(i, value, owners_[i]);
    if (full.defined() && !full.is_alias_of(value)) full.copy_(full_value);
  });
  std::vector<ParameterStep> settings;
  for (const size_t i : own_) {
    own_gradients.push_back(gradients[i]);
    settings.push_back(step.parameters[i]);
  }
  inner().step(own_gradients, settings, step.gradient_scale);
  for (int64_t rank = 0; data_.size() > 1 && rank < data_.size(); ++rank)
    data_.broadcast(full_.subset(indices_of(rank)).flat(), rank);
  if (division_ == nullptr || division_->ranks() == 1) return;
  for_each_used(
      [&](size_t i, const Tensor& value, const Tensor& full) { division_->scatter(i, full, value, owners_[i]); });
}

std::vector<StateTensor> ShardedOptimizer::own_state() const {
  std::vector<StateTensor> state = inner().state_tensors();
  for (StateTensor& tensor : state) {
    if (tensor.parameter) tensor.parameter = own_[*tensor.parameter];
    if (!tensor.entries) continue;
    for (size_t& parameter : *tensor.entries) parameter = own_[parameter];
  }
  return state;
}

std::vector<StateTensor> ShardedOptimizer::state_tensors() const {
  if (shards_ != nullptr) return inner().state_tensors();
  std::map<std::pair<std::string, std::optional<size_t>>, StateTensor> own;
  for (StateTensor& tensor : own_state()) own.emplace(std::pair(tensor.kind, tensor.parameter), tensor);
  std::vector<StateTensor> all = layout_;
  for (StateTensor& tensor : all) {
    const auto entry = own.find({tensor.kind, tensor.parameter});
    if (entry == own.end()) continue;
    const StateTensor& part = entry->second;
    tensor.value = tensor.entries ? at::zeros_like(tensor.value) : part.value;
    for (size_t i = 0; tensor.entries && i < part.entries->size(); ++i)
      tensor.value[place_of((*part.entries)[i], tensor)].copy_(part.value[static_cast<int64_t>(i)]);
  }
  return all;
}

Tensor ShardedOptimizer::full(const StateTensor& own) const {
  if (shards_ != nullptr) return own.parameter ? shards_->full(*own.parameter, own.value) : own.value;
  const bool first = data_.rank() == 0;
  if (own.entries) {
    const Tensor sum = own.value.clone();
    for (size_t i = 0; division_ != nullptr && i < own.entries->size(); ++i) {
      if (!division_->counts((*own.entries)[i])) sum[static_cast<int64_t>(i)].zero_();
    }
    data_.sum(sum);
    if (division_ != nullptr && first) {
      division_->group().sum(sum);
      division_->pipeline().sum(sum);
    }
    return sum;
  }
  if (!own.parameter) return own.value;
  const size_t parameter = *own.parameter;
  Tensor x = own.value;
  if (x.is_meta() && first) x = at::empty(x.sizes(), x.options().device(parameters().device()));
  const auto place = std::lower_bound(candidates_.begin(), candidates_.end(), parameter);
  if (place != candidates_.end() && *place == parameter) {
    const auto after =
        std::upper_bound(begins_.begin(), begins_.end() - 1, static_cast<size_t>(place - candidates_.begin()));
    const int64_t owner = after - begins_.begin() - 1;
    if (owner > 0 && data_.rank() == owner) data_.send(x, 0);
    if (owner > 0 && first) data_.receive(x, owner);
  }
  if (division_ != nullptr && first) division_->send_to_first(parameter, x, owners_[parameter]);
  return x;
}

void ShardedOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  NamedTensors part;
  for (const StateTensor& own : own_state()) {
    const std::string name = name_of(own, parameters());
    Tensor stored = find_tensor(tensors, name, origin);
    if (shards_ != nullptr && own.parameter) stored = shards_->shard(*own.parameter, stored);
    const StateTensor* full = own.entries ? find_by(layout_, &StateTensor::kind, own.kind) : nullptr;
    if (full != nullptr && stored.numel() == full->value.numel()) {
      std::vector<int64_t> places;
      for (const size_t parameter : *own.entries) places.push_back(place_of(parameter, *full));
      stored = stored.reshape({-1}).index_select(0, at::tensor(places, stored.options().dtype(at::kLong)));
    }
    part.emplace_back(name, stored);
  }
  inner().load_state(part, origin);
}

}  // namespace plumb
