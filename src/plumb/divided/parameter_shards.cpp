#include "plumb/divided/parameter_shards.h"

#include <algorithm>
#include <optional>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The parameters outside of layers, then those of each layer.
std::vector<std::vector<size_t>> units_of(const Parameters& parameters, std::vector<LayerId>& layers) {
  std::vector<std::vector<size_t>> units(1);
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(parameters.all()[i].name);
    if (!id || !id->layer) {
      units.front().push_back(i);
      continue;
    }
    const LayerId layer{id->stack, id->layer};
    const auto at = static_cast<size_t>(std::find(layers.begin(), layers.end(), layer) - layers.begin());
    if (at == layers.size()) {
      layers.push_back(layer);
      units.emplace_back();
    }
    units[at + 1].push_back(i);
  }
  return units;
}

std::vector<int64_t> sizes_of(const Parameters& parameters) {
  std::vector<int64_t> sizes;
  for (const Parameter& parameter : parameters.all()) sizes.push_back(parameter.value.numel());
  return sizes;
}

}  // namespace

ParameterShards::ParameterShards(Parameters& parameters, const Group& group, bool shards_parameters)
    : parameters_(&parameters),
      group_(group),
      shards_parameters_(shards_parameters),
      layout_(sizes_of(parameters), units_of(parameters, layers_), group.size()),
      begins_{0},
      local_(parameters) {
  if (shards_parameters && !parameters.device().is_cpu())
    throw Error("the parameters of a model on a GPU cannot be cut", "set train.shard to gradients");
  for (const Parameter& parameter : parameters.all()) begins_.push_back(begins_.back() + parameter.value.numel());
  int64_t all = 0;
  for (const ShardLayout::Unit& unit : layout_.units()) {
    begins_in_local_.push_back(all);
    all += unit.shard;
  }
  const Tensor flat = at::zeros({shards_parameters ? all : 0}, parameters.options());
  std::vector<Tensor> values;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const ShardLayout::Range range = layout_.range(i, group.rank());
    values.push_back(shards_parameters
                         ? flat.narrow(0, begins_in_local_[layout_.unit_of(i)] + range.in_shard, range.count)
                         : shard(i, parameters.all()[i].value.detach()));
  }
  local_ = parameters.with_values(values, flat);
}

Tensor ParameterShards::shard(size_t parameter, const Tensor& full) const {
  if (full.sizes() != parameters_->all()[parameter].value.sizes()) return full;
  const ShardLayout::Range range = layout_.range(parameter, group_.rank());
  return full.reshape({-1}).narrow(0, range.begin, range.count);
}

Tensor ParameterShards::full(size_t parameter, const Tensor& shard) const {
  if (shard.sizes() != local_.all()[parameter].value.sizes()) return shard;
  int64_t longest = 0;  // all are padded to this length
  for (int64_t rank = 0; rank < group_.size(); ++rank)
    longest = std::max(longest, layout_.range(parameter, rank).count);
  const Tensor padded = at::zeros({longest}, shard.options().requires_grad(false));
  padded.narrow(0, 0, shard.numel()).copy_(shard.detach());
  const std::vector<Tensor> shards = group_.gather(padded);
  if (group_.rank() > 0) return {};
  const Tensor& like = parameters_->all()[parameter].value;
  const Tensor result = at::empty({like.numel()}, padded.options());
  for (int64_t rank = 0; rank < group_.size(); ++rank) {
    const ShardLayout::Range range = layout_.range(parameter, rank);
    result.narrow(0, range.begin, range.count).copy_(shards[static_cast<size_t>(rank)].narrow(0, 0, range.count));
  }
  return result.view(like.sizes());
}

int64_t ParameterShards::index_in_local(int64_t element) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, element);
  const auto parameter = static_cast<size_t>(after - begins_.begin() - 1);
  const ShardLayout::Range range = layout_.range(parameter, group_.rank());
  const int64_t at = element - begins_[parameter] - range.begin;
  return at < 0 || at >= range.count ? -1 : begins_in_local_[layout_.unit_of(parameter)] + range.in_shard + at;
}

void ParameterShards::all_gather() const {
  if (shards_parameters_) return;
  const at::NoGradGuard no_graph;
  for (const ShardLayout::Unit& unit : layout_.units()) {
    const Tensor shard = at::zeros({unit.shard}, parameters_->options());
    for (const size_t i : unit.tensors) {
      const ShardLayout::Range range = layout_.range(i, group_.rank());
      shard.narrow(0, range.in_shard, range.count).copy_(local_.all()[i].value);
    }
    const std::vector<Tensor> shards = group_.all_gather(shard);
    for (const size_t i : unit.tensors) {
      const Tensor value = parameters_->all()[i].value.detach().view({-1});
      for (int64_t rank = 0; rank < group_.size(); ++rank) {
        if (rank == group_.rank()) continue;
        const ShardLayout::Range range = layout_.range(i, rank);
        const Tensor& theirs = shards[static_cast<size_t>(rank)];
        value.narrow(0, range.begin, range.count).copy_(theirs.narrow(0, range.in_shard, range.count));
      }
    }
  }
}

void ParameterShards::shard_values() {
  if (!shards_parameters_ || !full_.empty()) return;
  const at::NoGradGuard no_graph;
  const bool present = parameters_->has_flat();
  const std::vector<Tensor> values = parameters_->values();
  for (const ShardLayout::Unit& unit : layout_.units()) {
    const Tensor full = at::empty({unit.shard * layout_.ranks()}, parameters_->options());
    for (const size_t i : unit.tensors) {
      Tensor value = values[i];
      if (present) local_.all()[i].value.detach().copy_(shard(i, value.detach()));
      value.set_data(full.narrow(0, layout_.begin(i), value.numel()).view(value.sizes()));
    }
    set_memory(full, false);
    full_.push_back(full);
  }
  parameters_->drop_flat();
}

void ParameterShards::restore() {
  if (full_.empty()) return;
  unshard_all();
  parameters_->make_flat();
  full_.clear();
}

void ParameterShards::unshard_unit(size_t unit, bool first_only) {
  if (full_.empty()) return;
  const at::NoGradGuard no_graph;
  const int64_t size = layout_.units()[unit].shard;
  const Tensor own = local_.flat().narrow(0, begins_in_local_[unit], size);
  const std::vector<Tensor> shards = first_only ? group_.gather(own) : group_.all_gather(own);
  if (shards.empty()) return;
  set_memory(full_[unit], true);
  // Not as a change that autograd counts: what it has saved finds the values that it had.
  const Tensor values = full_[unit].variable_data();
  for (size_t rank = 0; rank < shards.size(); ++rank)
    values.narrow(0, static_cast<int64_t>(rank) * size, size).copy_(shards[rank]);
}

void ParameterShards::reshard_unit(size_t unit) {
  if (!full_.empty()) set_memory(full_[unit], false);
}

size_t ParameterShards::unit_of(const LayerId& layer) const {
  const auto place = std::find(layers_.begin(), layers_.end(), layer);
  return place == layers_.end() ? 0 : static_cast<size_t>(place - layers_.begin()) + 1;
}

void ParameterShards::unshard(const LayerId& layer) {
  if (const size_t unit = unit_of(layer); unit > 0) unshard_unit(unit, false);
}

void ParameterShards::reshard(const LayerId& layer) {
  if (const size_t unit = unit_of(layer); unit > 0) reshard_unit(unit);
}

void ParameterShards::unshard_all(bool first_only) {
  for (size_t unit = 0; unit < layout_.units().size(); ++unit) unshard_unit(unit, first_only);
}

void ParameterShards::reshard_all() {
  for (size_t unit = 0; unit < layout_.units().size(); ++unit) reshard_unit(unit);
}

}  // namespace plumb
