#include "plumb/nn/layer_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {

LayerDivision::LayerDivision(const Parameters& parameters, const Group& group) : group_(group) {
  for (const Parameter& parameter : parameters.all()) all_.push_back({parameter.value, parameter.value.sizes().vec()});
}

int64_t LayerDivision::share(int64_t size) const {
  if (size % group_.size() == 0) return size / group_.size();
  throw Error(fmt::format("a layer of {} features or heads cannot be divided among {} processes", size, group_.size()));
}

LayerDivision::Entry& LayerDivision::entry_of(const Tensor& value) {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Entry& entry) { return entry.value.is_same(value); });
  if (found == all_.end()) throw Error("a tensor to divide is no parameter of the model");
  return *found;
}

void LayerDivision::cut(const Tensor& value, int64_t dimension, std::vector<int64_t> parts) {
  Entry& entry = entry_of(value);
  entry.dimension = dimension;
  entry.parts = parts.empty() ? std::vector<int64_t>{value.size(dimension)} : std::move(parts);
  for (const int64_t part : entry.parts) static_cast<void>(share(part));
}

void LayerDivision::share_gradient(const Tensor& value) { entry_of(value).shares_gradient = true; }

void LayerDivision::apply(Parameters& parameters) const {
  const at::NoGradGuard no_graph;
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < all_.size(); ++i) pieces.push_back(piece(i, all_[i].value.detach()).clone());
  for (size_t i = 0; i < all_.size(); ++i) all_[i].value.set_data(pieces[i]);
  parameters.finish();
  for (size_t i = 0; i < all_.size(); ++i) all_[i].value.copy_(pieces[i]);
}

Tensor LayerDivision::piece(size_t parameter, const Tensor& whole) const {
  const Entry& entry = all_[parameter];
  if (entry.parts.empty() || whole.sizes() != entry.sizes) return whole;
  std::vector<Tensor> own;
  int64_t begin = 0;
  for (const int64_t part : entry.parts) {
    const int64_t size = share(part);
    own.push_back(whole.narrow(entry.dimension, begin + group_.rank() * size, size));
    begin += part;
  }
  return at::cat(own, entry.dimension);
}

Tensor LayerDivision::whole(size_t parameter, const Tensor& piece) const {
  const Entry& entry = all_[parameter];
  if (entry.parts.empty() || piece.sizes() != entry.value.sizes()) return piece;
  std::vector<int64_t> sizes;
  for (const int64_t part : entry.parts) sizes.push_back(share(part));
  std::vector<std::vector<Tensor>> by_rank;
  for (const Tensor& each : group_.gather(piece)) by_rank.push_back(each.split_with_sizes(sizes, entry.dimension));
  if (by_rank.empty()) return {};
  std::vector<Tensor> rows;
  for (size_t part = 0; part < sizes.size(); ++part) {
    for (const std::vector<Tensor>& pieces : by_rank) rows.push_back(pieces[part]);
  }
  return at::cat(rows, entry.dimension);
}

void LayerDivision::sum_shares(std::vector<Tensor>& gradients) const {
  const at::NoGradGuard no_graph;
  std::vector<size_t> which;
  std::vector<Tensor> shares;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].shares_gradient) continue;
    which.push_back(i);
    shares.push_back(gradients[i]);
  }
  const std::vector<Tensor> sums = group_.sum_coalesced(shares);
  for (size_t k = 0; k < which.size(); ++k) gradients[which[k]] = sums[k];
}

}  // namespace plumb
