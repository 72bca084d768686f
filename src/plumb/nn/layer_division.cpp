#include "plumb/nn/layer_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

/// No elements, in a shape with as many dimensions.
Tensor without_rows(const Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  if (sizes.empty()) sizes.push_back(0);
  sizes.front() = 0;
  return at::empty(sizes, x.options().requires_grad(false));
}

}  // namespace

LayerDivision::LayerDivision(const Parameters& parameters, const Group& group)
    : LayerDivision(parameters, group.size()) {
  group_ = group;
}

LayerDivision::LayerDivision(const Parameters& parameters, int64_t ranks) : ranks_(ranks) {
  for (const Parameter& parameter : parameters.all()) all_.push_back({parameter.value, parameter.value.sizes().vec()});
}

int64_t LayerDivision::per_rank(int64_t size) const {
  if (size % ranks_ == 0) return size / ranks_;
  throw Error(fmt::format("a layer of {} features or heads cannot be divided among {} processes", size, ranks_));
}

LayerDivision::Entry& LayerDivision::entry_of(const Tensor& value) {
  const auto entry =
      std::find_if(all_.begin(), all_.end(), [&](const Entry& entry) { return entry.value.is_same(value); });
  if (entry == all_.end()) throw Error("a tensor to divide is no parameter of the model");
  return *entry;
}

void LayerDivision::divide(const Tensor& value, int64_t dimension, std::vector<int64_t> parts) {
  Entry& entry = entry_of(value);
  entry.dimension = dimension;
  entry.parts = parts.empty() ? std::vector<int64_t>{value.size(dimension)} : std::move(parts);
  for (const int64_t part : entry.parts) static_cast<void>(per_rank(part));
}

void LayerDivision::sum_gradient(const Tensor& value) { entry_of(value).sums_gradient = true; }

void LayerDivision::replace(Parameters& parameters, const std::function<Tensor(size_t, const Tensor&)>& shard) {
  const at::NoGradGuard no_graph;
  const bool present = parameters.has_flat();
  std::vector<Tensor> shards;
  for (size_t i = 0; i < all_.size(); ++i) {
    const Tensor value = all_[i].value.detach();
    if (present) {
      shards.push_back(shard(i, value).clone());
    } else {
      const Tensor like = shard(i, at::empty(value.sizes(), parameters.options().device(at::kMeta)));
      shards.push_back(empty_without_memory(like.sizes(), parameters.options()));
    }
  }
  for (size_t i = 0; i < all_.size(); ++i) all_[i].value.set_data(shards[i]);
  if (present) parameters.make_flat();
}

void LayerDivision::apply(Parameters& parameters) {
  replace(parameters, [&](size_t i, const Tensor& full) { return shard(i, full); });
}

void LayerDivision::keep_stage(Parameters& parameters, const Group& pipeline, std::vector<std::vector<int64_t>> users) {
  pipeline_ = pipeline;
  std::map<std::vector<int64_t>, std::vector<size_t>> by_users;
  for (size_t i = 0; i < all_.size(); ++i) {
    all_[i].users = std::move(users[i]);
    if (all_[i].users.size() > 1) by_users[all_[i].users].push_back(i);
  }
  replace(parameters, [&](size_t i, const Tensor& value) { return is_used(all_[i]) ? value : without_rows(value); });
  for (const auto& [stages, which] : by_users) {
    const bool member = contains(stages, pipeline.rank());
    const Group group = pipeline.split(member ? 0 : 1 + pipeline.rank());
    if (member) shared_.push_back({group, which});
  }
}

bool LayerDivision::is_used(const Entry& entry) const {
  return pipeline_.size() == 1 || contains(entry.users, pipeline_.rank());
}

Tensor LayerDivision::shard_of(const Entry& entry, const Tensor& full, int64_t rank) const {
  if (entry.parts.empty()) return full;
  std::vector<Tensor> own;
  int64_t begin = 0;
  for (const int64_t part : entry.parts) {
    const int64_t size = per_rank(part);
    own.push_back(full.narrow(entry.dimension, begin + rank * size, size));
    begin += part;
  }
  return at::cat(own, entry.dimension);
}

Tensor LayerDivision::shard(size_t parameter, const Tensor& full) const {
  const Entry& entry = all_[parameter];
  if (full.sizes() != entry.sizes) return full;
  const Tensor shard = shard_of(entry, full, group_.rank());
  return is_used(entry) ? shard : without_rows(shard);
}

Tensor LayerDivision::gather(size_t parameter, const Tensor& shard, int64_t root) const {
  const Entry& entry = all_[parameter];
  if (entry.parts.empty()) return shard;
  std::vector<int64_t> sizes;
  for (const int64_t part : entry.parts) sizes.push_back(per_rank(part));
  std::vector<std::vector<Tensor>> by_rank;
  for (const Tensor& of_rank : group_.gather(shard, root))
    by_rank.push_back(of_rank.split_with_sizes(sizes, entry.dimension));
  std::vector<Tensor> rows;
  for (size_t part = 0; part < sizes.size() && !by_rank.empty(); ++part) {
    for (const std::vector<Tensor>& shards : by_rank) rows.push_back(shards[part]);
  }
  return rows.empty() ? Tensor() : at::cat(rows, entry.dimension);
}

void LayerDivision::scatter(size_t parameter, const Tensor& full, const Tensor& shard, int64_t root) const {
  const Entry& entry = all_[parameter];
  const bool sends = group_.rank() == root;
  if (entry.parts.empty()) {
    if (sends) shard.copy_(full);
    return group_.broadcast(shard, root);
  }
  std::vector<Tensor> shards;
  for (int64_t rank = 0; sends && rank < group_.size(); ++rank) shards.push_back(shard_of(entry, full, rank));
  group_.scatter(shards, shard, root);
}

void LayerDivision::send_to_first(size_t parameter, const Tensor& x, int64_t root) const {
  const int64_t stage = pipeline_.size() == 1 ? 0 : all_[parameter].users.front();
  if (root != 0 && pipeline_.rank() == stage) {
    if (group_.rank() == root) group_.send(x, 0);
    if (group_.rank() == 0) group_.receive(x, root);
  }
  if (stage == 0 || group_.rank() > 0) return;
  if (pipeline_.rank() == stage) pipeline_.send(x, 0);
  if (pipeline_.rank() == 0) pipeline_.receive(x, stage);
}

Tensor LayerDivision::full(size_t parameter, const Tensor& shard) const {
  const Entry& entry = all_[parameter];
  if (shard.sizes() != entry.value.sizes()) return shard;
  Tensor result = is_used(entry) ? gather(parameter, shard, 0) : shard;
  if (is_first() && pipeline_.size() > 1 && entry.users.front() > 0) result = at::empty(entry.sizes, shard.options());
  send_to_first(parameter, result, 0);
  return result;
}

void LayerDivision::sum_gradients(std::vector<Tensor>& gradients) const {
  std::vector<size_t> which;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].sums_gradient && is_used(all_[i]) && gradients[i].defined()) which.push_back(i);
  }
  sum(gradients, which, group_);
  for (const Shared& each : shared_) sum(gradients, each.parameters, each.group);
}

void LayerDivision::sum(std::vector<Tensor>& gradients, const std::vector<size_t>& which, const Group& group) {
  const at::NoGradGuard no_graph;
  std::vector<Tensor> shares;
  for (const size_t i : which) shares.push_back(gradients[i]);
  const std::vector<Tensor> sums = group.sum_coalesced(shares);
  for (size_t k = 0; k < which.size(); ++k) gradients[which[k]] = sums[k];
}

}  // namespace plumb
