#include "plumb/divided/partial_optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {
namespace {

/// Where the entry of a parameter is in a tensor with entries of these ones.
int64_t place_of(size_t parameter, const StateTensor& full) {
  return std::lower_bound(full.entries->begin(), full.entries->end(), parameter) - full.entries->begin();
}

}  // namespace

void PartialOptimizer::set_layout(const std::vector<StateTensor>& full) {
  layout_ = full;
  for (StateTensor& tensor : layout_)
    tensor.value = at::empty(tensor.value.sizes(), tensor.value.options().device(at::kMeta));
}

void PartialOptimizer::set_part(std::vector<size_t> own, std::unique_ptr<Optimizer> inner) {
  own_ = std::move(own);
  replace_inner(std::move(inner));
}

std::vector<StateTensor> PartialOptimizer::own_state() const {
  std::vector<StateTensor> state = inner().state_tensors();
  for (StateTensor& tensor : state) {
    if (tensor.parameter) tensor.parameter = own_[*tensor.parameter];
    if (!tensor.entries) continue;
    for (size_t& parameter : *tensor.entries) parameter = own_[parameter];
  }
  return state;
}

void PartialOptimizer::collect_full(bool keeps) {
  std::map<std::pair<std::string, std::optional<size_t>>, StateTensor> own;
  for (StateTensor& tensor : own_state()) own.emplace(std::pair(tensor.kind, tensor.parameter), tensor);
  collected_.clear();
  for (StateTensor full : layout_) {
    const auto entry = own.find({full.kind, full.parameter});
    const Tensor value = entry == own.end() ? Tensor() : entry->second.value;
    const at::TensorOptions options = full.value.options().device(full.parameter ? parameters().device() : at::kCPU);
    if (full.parameter) {
      full.value = value.defined() ? value.contiguous().clone() : at::empty(full.value.sizes(), options);
      exchange(*full.parameter, full.value);
    } else if (full.entries) {
      full.value = at::zeros(full.value.sizes(), options);
      for (size_t i = 0; value.defined() && i < entry->second.entries->size(); ++i) {
        const size_t parameter = (*entry->second.entries)[i];
        if (counts(parameter)) full.value[place_of(parameter, full)].copy_(value[static_cast<int64_t>(i)]);
      }
      sum(full.value);
    } else {
      full.value = value.clone();
    }
    if (keeps) collected_.push_back(std::move(full));
  }
}

void PartialOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  NamedTensors part;
  for (const StateTensor& own : own_state()) {
    const std::string name = name_of(own, parameters());
    Tensor stored = find_tensor(tensors, name, origin);
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
