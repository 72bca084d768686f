#include "plumb/analysis/curvature/divided_vectors.h"

namespace plumb {
namespace {

/// `joined`, also of nothing.
Tensor all_of(const std::vector<Tensor>& pieces, const at::TensorOptions& options) {
  return pieces.empty() ? at::empty({0}, options) : joined(pieces);
}

}  // namespace

DividedVectors::DividedVectors(const Parameters& parameters, const LayerDivision* division)
    : parameters_(parameters), division_(division) {}

/// This process's parameters.
std::vector<Tensor> DividedVectors::own(const std::vector<size_t>& places) const {
  std::vector<Tensor> values;
  for (const size_t place : places) values.push_back(parameters_.all()[place].value.detach());
  return values;
}

int64_t DividedVectors::size(const std::vector<size_t>& places) const {
  int64_t size = 0;
  for (const size_t place : places) {
    const int64_t own = parameters_.all()[place].value.numel();
    size += division_ != nullptr && division_->is_divided(place) ? own * division_->ranks() : own;
  }
  return size;
}

VectorSpace DividedVectors::space(const std::vector<size_t>& places) const {
  VectorSpace space(size(places));
  if (division_ == nullptr) return space;
  space.sum_of_parts = [group = division_->group()](const std::vector<double>& parts) { return group.sums(parts); };
  space.part = [self = *this, places](const auto& next) { return self.part(next, places); };
  return space;
}

Tensor DividedVectors::part(const std::function<Tensor(int64_t)>& next, const std::vector<size_t>& places) const {
  if (division_ == nullptr) return next(size(places));
  std::vector<Tensor> pieces;
  for (const size_t place : places) {
    const std::vector<int64_t>& sizes = division_->full_sizes(place);
    const Tensor full = next(c10::multiply_integers(sizes)).view(sizes);
    if (keeps(place)) pieces.push_back(division_->shard(place, full));
  }
  return all_of(pieces, parameters_.options());
}

Tensor DividedVectors::elements(const Tensor& part, const std::vector<size_t>& places) const {
  if (division_ == nullptr) return part;
  const at::NoGradGuard no_graph;
  std::vector<Tensor> kept, elements = own(places);
  for (size_t i = 0; i < places.size(); ++i) {
    if (keeps(places[i])) kept.push_back(elements[i]);
  }
  kept = split_like(part, kept);
  std::vector<Tensor> common;
  for (size_t i = 0, next = 0; i < places.size(); ++i) {
    if (keeps(places[i])) elements[i] = kept[next++];
    if (!division_->is_divided(places[i])) common.push_back(elements[i]);
  }
  if (!common.empty()) {
    const Tensor all = joined(common);
    division_->group().broadcast(all);
    common = split_like(all, common);
    for (size_t i = 0, next = 0; i < places.size(); ++i) {
      if (!division_->is_divided(places[i])) elements[i] = common[next++];
    }
  }
  return joined(elements);
}

Tensor DividedVectors::part_of_derivatives(const Tensor& derivatives, const std::vector<size_t>& places) const {
  if (division_ == nullptr) return derivatives;
  std::vector<Tensor> pieces = split_like(derivatives, own(places)), all(parameters_.all().size()), kept;
  for (size_t i = 0; i < places.size(); ++i) all[places[i]] = pieces[i];
  division_->sum_gradients(all);
  for (const size_t place : places) {
    if (keeps(place)) kept.push_back(all[place]);
  }
  return all_of(kept, parameters_.options());
}

}  // namespace plumb
