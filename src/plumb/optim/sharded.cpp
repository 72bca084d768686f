#include "plumb/optim/sharded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// True if a tensor of the state, such as "m.encoder.layers.0.linear1.weight", belongs to this parameter.
bool belongs_to(const std::string& tensor, const std::string& parameter) {
  return tensor.size() > parameter.size() + 1 && tensor.ends_with(parameter) &&
         tensor[tensor.size() - parameter.size() - 1] == '.';
}

std::map<std::string, Tensor> by_name(const NamedTensors& tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace

std::optional<size_t> owner_of(const std::string& tensor, const Parameters& parameters) {
  std::optional<size_t> owner;  // the longest match, since one name may end with another
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const std::string& name = parameters.all()[i].name;
    if (belongs_to(tensor, name) && (!owner || name.size() > parameters.all()[*owner].name.size())) owner = i;
  }
  return owner;
}

std::vector<size_t> shares_of(const Parameters& parameters, int64_t ranks) {
  std::vector<int64_t> before{0};  // elements
  for (const Parameter& parameter : parameters.all()) before.push_back(before.back() + parameter.value.numel());
  std::vector<size_t> begins{0};
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const double wanted = static_cast<double>(before.back()) * static_cast<double>(rank) / static_cast<double>(ranks);
    const auto distance = [&](int64_t elements) { return std::abs(static_cast<double>(elements) - wanted); };
    const auto nearest = std::min_element(before.begin() + static_cast<std::ptrdiff_t>(begins.back()), before.end(),
                                          [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
    begins.push_back(static_cast<size_t>(nearest - before.begin()));
  }
  begins.push_back(parameters.all().size());
  return begins;
}

ShardedOptimizer::ShardedOptimizer(const Parameters& parameters, Factory factory)
    : Optimizer(parameters), parameters_(parameters), factory_(std::move(factory)), own_(factory_(parameters)) {
  for (const auto& [name, tensor] : own_->state()) shapes_.push_back({name, tensor.sizes().vec(), tensor.options()});
}

void ShardedOptimizer::share(const Group& group) {
  if (group.size() == 1) return;
  const NamedTensors all = own_->state();
  group_ = group;
  begins_ = shares_of(parameters_, group.size());
  own_ = factory_(parameters_.part(first(), last()));
  load_state(all, "the state of all parameters");
}

void ShardedOptimizer::update(const OptimizerStep& step) {
  all_.clear();
  if (group_.size() == 1) return own_->step(step.gradients, step.parameters, step.gradient_scale);
  const std::vector<Tensor> gradients(step.gradients.begin() + static_cast<std::ptrdiff_t>(first()),
                                      step.gradients.begin() + static_cast<std::ptrdiff_t>(last()));
  own_->step(gradients, step.parameters.subspan(first(), last() - first()), step.gradient_scale);
  for (int64_t rank = 0; rank < group_.size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    if (const Parameters part = parameters_.part(begins_[at], begins_[at + 1]); part.count() > 0)
      group_.broadcast(part.flat(), rank);
  }
}

void ShardedOptimizer::collect() {
  if (group_.size() == 1) return;
  const std::map<std::string, Tensor> own = by_name(own_->state());
  all_.clear();
  for (const auto& [name, sizes, options] : shapes_) {
    const auto found = own.find(name);
    if (const auto owner = owner_of(name, parameters_)) {
      const auto rank = std::upper_bound(begins_.begin(), begins_.end() - 1, *owner) - begins_.begin() - 1;
      const Tensor whole = group_.rank() == rank ? found->second.contiguous().clone() : at::empty(sizes, options);
      group_.broadcast(whole, rank);
      if (group_.rank() == 0) all_.emplace_back(name, whole);
      continue;
    }
    const Tensor none = at::empty({0}, options);
    const Tensor piece = found == own.end() ? none : found->second.contiguous();
    // One entry per parameter, in their order, or one for all.
    Tensor whole = sizes.empty() ? piece.clone() : at::empty(sizes, options);
    if (sizes.empty()) {
      group_.broadcast(whole, 0);
    } else {
      int64_t begin = 0;
      for (int64_t rank = 0; rank < group_.size(); ++rank) {
        const Tensor count = at::full({1}, piece.numel(), at::kLong);
        group_.broadcast(count, rank);
        const auto entries = count.item<int64_t>();
        if (begin + entries > whole.numel()) break;  // one for all, in a vector of one element
        if (group_.rank() == rank) whole.view({-1}).narrow(0, begin, entries).copy_(piece.view({-1}));
        group_.broadcast(whole.view({-1}).narrow(0, begin, entries), rank);
        begin += entries;
      }
    }
    if (group_.rank() == 0) all_.emplace_back(name, whole);
  }
}

NamedTensors ShardedOptimizer::state() const {
  if (group_.size() == 1) return own_->state();
  if (all_.empty()) throw Error("the optimizer's state is sharded across the processes");
  return all_;
}

void ShardedOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  if (group_.size() == 1) return own_->load_state(tensors, origin);
  NamedTensors own;
  const std::map<std::string, Tensor> given = by_name(tensors);
  for (const auto& [name, like] : own_->state()) {
    const auto found = given.find(name);
    if (found == given.end()) continue;  // reported by load_state
    if (owner_of(name, parameters_) || found->second.numel() == 1) {
      own.emplace_back(name, found->second);
      continue;
    }
    // Entries of this rank's parameters follow those of lower ranks.
    const std::vector<Tensor> counts = group_.all_gather(at::full({1}, like.numel(), at::kLong));
    int64_t begin = 0;
    for (int64_t rank = 0; rank < group_.rank(); ++rank) begin += counts[static_cast<size_t>(rank)].item<int64_t>();
    if (begin + like.numel() > found->second.numel())
      throw Error(fmt::format("{}: tensor '{}' is too short", origin, name));
    own.emplace_back(name, found->second.reshape({-1}).narrow(0, begin, like.numel()).view(like.sizes()));
  }
  own_->load_state(own, origin);
}

int64_t ShardedOptimizer::state_size() const {
  int64_t elements = 0;
  for (const auto& [name, tensor] : own_->state()) elements += tensor.numel();
  return elements;
}

std::optional<Preconditioning> ShardedOptimizer::preconditioning() const {
  if (group_.size() > 1) return std::nullopt;
  return own_->preconditioning();
}

}  // namespace plumb
