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

ParameterShards::ParameterShards(Parameters& parameters, const Group& group, bool cuts_values)
    : parameters_(&parameters),
      group_(group),
      cuts_values_(cuts_values),
      layout_(sizes_of(parameters), units_of(parameters, layers_), group.size()),
      begins_{0},
      own_(parameters) {
  if (cuts_values && !parameters.device().is_cpu())
    throw Error("the parameters of a model on a GPU cannot be cut", "set train.shard to gradients");
  for (const Parameter& parameter : parameters.all()) begins_.push_back(begins_.back() + parameter.value.numel());
  int64_t all = 0;
  for (const ShardLayout::Unit& unit : layout_.units()) {
    pieces_.push_back(all);
    all += unit.piece;
  }
  const Tensor flat = at::zeros({cuts_values ? all : 0}, parameters.options());
  std::vector<Tensor> values;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const ShardLayout::Kept kept = layout_.kept(i, group.rank());
    values.push_back(cuts_values ? flat.narrow(0, pieces_[layout_.unit_of(i)] + kept.in_piece, kept.count)
                                 : piece(i, parameters.all()[i].value.detach()));
  }
  own_ = parameters.with_values(values, flat);
}

Tensor ParameterShards::piece(size_t parameter, const Tensor& whole) const {
  if (whole.sizes() != parameters_->all()[parameter].value.sizes()) return whole;
  const ShardLayout::Kept kept = layout_.kept(parameter, group_.rank());
  return whole.reshape({-1}).narrow(0, kept.begin, kept.count);
}

Tensor ParameterShards::whole(size_t parameter, const Tensor& piece) const {
  if (piece.sizes() != own_.all()[parameter].value.sizes()) return piece;
  int64_t longest = 0;  // all are padded to this length
  for (int64_t rank = 0; rank < group_.size(); ++rank) longest = std::max(longest, layout_.kept(parameter, rank).count);
  const Tensor padded = at::zeros({longest}, piece.options().requires_grad(false));
  padded.narrow(0, 0, piece.numel()).copy_(piece.detach());
  const std::vector<Tensor> pieces = group_.gather(padded);
  if (group_.rank() > 0) return {};
  const Tensor& like = parameters_->all()[parameter].value;
  const Tensor found = at::empty({like.numel()}, padded.options());
  for (int64_t rank = 0; rank < group_.size(); ++rank) {
    const ShardLayout::Kept kept = layout_.kept(parameter, rank);
    found.narrow(0, kept.begin, kept.count).copy_(pieces[static_cast<size_t>(rank)].narrow(0, 0, kept.count));
  }
  return found.view(like.sizes());
}

int64_t ParameterShards::place_in_own(int64_t element) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, element);
  const auto parameter = static_cast<size_t>(after - begins_.begin() - 1);
  const ShardLayout::Kept kept = layout_.kept(parameter, group_.rank());
  const int64_t at = element - begins_[parameter] - kept.begin;
  return at < 0 || at >= kept.count ? -1 : pieces_[layout_.unit_of(parameter)] + kept.in_piece + at;
}

void ParameterShards::publish() const {
  if (cuts_values_) return;
  const at::NoGradGuard no_graph;
  for (const ShardLayout::Unit& unit : layout_.units()) {
    const Tensor piece = at::zeros({unit.piece}, parameters_->options());
    for (const size_t i : unit.tensors) {
      const ShardLayout::Kept kept = layout_.kept(i, group_.rank());
      piece.narrow(0, kept.in_piece, kept.count).copy_(own_.all()[i].value);
    }
    const std::vector<Tensor> pieces = group_.all_gather(piece);
    for (const size_t i : unit.tensors) {
      const Tensor value = parameters_->all()[i].value.detach().view({-1});
      for (int64_t rank = 0; rank < group_.size(); ++rank) {
        if (rank == group_.rank()) continue;
        const ShardLayout::Kept kept = layout_.kept(i, rank);
        const Tensor& theirs = pieces[static_cast<size_t>(rank)];
        value.narrow(0, kept.begin, kept.count).copy_(theirs.narrow(0, kept.in_piece, kept.count));
      }
    }
  }
}

void ParameterShards::cut() {
  if (!cuts_values_ || !whole_.empty()) return;
  const at::NoGradGuard no_graph;
  const bool present = parameters_->has_flat();
  const std::vector<Tensor> values = parameters_->values();
  for (const ShardLayout::Unit& unit : layout_.units()) {
    const Tensor whole = at::empty({unit.piece * layout_.ranks()}, parameters_->options());
    for (const size_t i : unit.tensors) {
      Tensor value = values[i];
      if (present) own_.all()[i].value.detach().copy_(piece(i, value.detach()));
      value.set_data(whole.narrow(0, layout_.begin(i), value.numel()).view(value.sizes()));
    }
    set_memory(whole, false);
    whole_.push_back(whole);
  }
  parameters_->drop_flat();
}

void ParameterShards::restore() {
  if (whole_.empty()) return;
  fetch_all();
  parameters_->make_flat();
  whole_.clear();
}

void ParameterShards::fetch_unit(size_t unit, bool first_only) {
  if (whole_.empty()) return;
  const at::NoGradGuard no_graph;
  const int64_t size = layout_.units()[unit].piece;
  const Tensor own = own_.flat().narrow(0, pieces_[unit], size);
  const std::vector<Tensor> pieces = first_only ? group_.gather(own) : group_.all_gather(own);
  if (pieces.empty()) return;
  set_memory(whole_[unit], true);
  // Not as a change that autograd counts: what it has saved finds the values that it had.
  const Tensor values = whole_[unit].variable_data();
  for (size_t rank = 0; rank < pieces.size(); ++rank)
    values.narrow(0, static_cast<int64_t>(rank) * size, size).copy_(pieces[rank]);
}

void ParameterShards::release_unit(size_t unit) {
  if (!whole_.empty()) set_memory(whole_[unit], false);
}

size_t ParameterShards::unit_of(const LayerId& layer) const {
  const auto found = std::find(layers_.begin(), layers_.end(), layer);
  return found == layers_.end() ? 0 : static_cast<size_t>(found - layers_.begin()) + 1;
}

void ParameterShards::fetch(const LayerId& layer) {
  if (const size_t unit = unit_of(layer); unit > 0) fetch_unit(unit, false);
}

void ParameterShards::release(const LayerId& layer) {
  if (const size_t unit = unit_of(layer); unit > 0) release_unit(unit);
}

void ParameterShards::fetch_all(bool first_only) {
  for (size_t unit = 0; unit < layout_.units().size(); ++unit) fetch_unit(unit, first_only);
}

void ParameterShards::release_all() {
  for (size_t unit = 0; unit < layout_.units().size(); ++unit) release_unit(unit);
}

}  // namespace plumb
