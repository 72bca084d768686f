#include "plumb/optim/gathered.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "plumb/base/contains.h"
#include "plumb/optim/parameter_set.h"
#include "plumb/optim/sharded.h"

namespace plumb {
namespace {

int64_t elements_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// The rank of each parameter's owner: the largest parameters first, each to the rank that has least so far.
std::vector<int64_t> assigned(const Parameters& pieces, const LayerDivision& division) {
  std::vector<size_t> order(pieces.all().size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size = [&](size_t i) { return elements_of(division.whole_sizes(i)); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size(a) > size(b); });
  std::vector<int64_t> owners(order.size()), loads(static_cast<size_t>(division.ranks()));
  for (const size_t i : order) {
    if (pieces.all()[i].value.numel() == 0) continue;  // another stage's
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += size(i);
    owners[i] = least - loads.begin();
  }
  return owners;
}

std::vector<size_t> owned(const Parameters& pieces, const std::vector<int64_t>& owners, int64_t rank) {
  std::vector<size_t> own;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (pieces.all()[i].value.numel() > 0 && owners[i] == rank) own.push_back(i);
  }
  return own;
}

/// Memory for the whole values of these parameters; they are the pieces if layers are not divided.
Parameters whole_parameters(const Parameters& pieces, const LayerDivision& division, const std::vector<size_t>& own) {
  const Parameters some = pieces.some(own);
  if (division.ranks() == 1) return some.with_values(some.values(), pieces.flat());
  int64_t count = 0;
  for (const size_t i : own) count += elements_of(division.whole_sizes(i));
  const Tensor flat = at::zeros({count}, pieces.options());
  std::vector<Tensor> values;
  int64_t begin = 0;
  for (const size_t i : own) {
    values.push_back(flat.narrow(0, begin, elements_of(division.whole_sizes(i))).view(division.whole_sizes(i)));
    begin += values.back().numel();
  }
  return some.with_values(values, flat);
}

}  // namespace

GatheredOptimizer::GatheredOptimizer(const Parameters& pieces, const LayerDivision& division, const Factory& factory)
    : Optimizer(pieces),
      pieces_(pieces),
      division_(&division),
      owners_(assigned(pieces, division)),
      own_(owned(pieces, owners_, division.group().rank())),
      whole_(whole_parameters(pieces, division, own_)),
      kept_(kept_by(factory, pieces, division)),
      inner_(factory(whole_)) {}

std::vector<GatheredOptimizer::Kept> GatheredOptimizer::kept_by(const Factory& factory, const Parameters& pieces,
                                                                const LayerDivision& division) {
  const at::TensorOptions nowhere = pieces.options().device(at::kMeta);
  const auto state_of = [&](const std::vector<size_t>& which) {
    std::vector<Tensor> values;
    int64_t count = 0;
    for (const size_t i : which) {
      values.push_back(at::empty(division.whole_sizes(i), nowhere));
      count += values.back().numel();
    }
    return factory(pieces.some(which).with_values(values, at::empty({count}, nowhere)))->state();
  };
  std::vector<size_t> all(pieces.all().size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<Kept> kept;
  for (const auto& [name, tensor] : state_of(all)) {
    kept.push_back({name, tensor.sizes().vec(), tensor.options().device(pieces.device()), owner_of(name, pieces), {}});
    if (!tensor.is_meta()) kept.back().options = tensor.options();
  }
  // The entries of a parameter are the tensors in the state of an optimizer of this one alone.
  for (const size_t i : all) {
    for (const auto& [name, tensor] : state_of({i})) {
      const auto found = std::find_if(kept.begin(), kept.end(), [&, &which = name](const Kept& one) {
        return one.name == which && !one.parameter;
      });
      if (found == kept.end()) continue;
      found->entries.resize(all.size());
      found->entries[i] = tensor.numel();
    }
  }
  for (Kept& one : kept) {
    const int64_t count = std::accumulate(one.entries.begin(), one.entries.end(), int64_t{0});
    if (count != elements_of(one.sizes)) one.entries.clear();  // one for all parameters
  }
  return kept;
}

template <typename Visit>
void GatheredOptimizer::visit_entries(const Kept& kept, const Visit& visit) const {
  int64_t begin = 0, own_begin = 0;
  for (size_t i = 0; i < kept.entries.size(); ++i) {
    const int64_t count = kept.entries[i];
    if (contains(own_, i)) {
      visit(i, begin, own_begin, count);
      own_begin += count;
    }
    begin += count;
  }
}

void GatheredOptimizer::update(const OptimizerStep& step) {
  collected_.clear();
  const int64_t rank = division_->group().rank();
  std::vector<Tensor> gradients;
  std::vector<ParameterStep> settings;
  const auto for_each_used = [&](const auto& work) {
    for (size_t i = 0, k = 0; i < pieces_.all().size(); ++i) {
      if (const Tensor value = pieces_.all()[i].value.detach(); value.numel() > 0)
        work(i, value, owners_[i] == rank ? whole_.all()[k++].value.detach() : Tensor());
    }
  };
  for_each_used([&](size_t i, const Tensor& value, const Tensor& whole) {
    const Tensor gradient = division_->gather(i, step.gradients[i], owners_[i]);
    const Tensor found = division_->gather(i, value, owners_[i]);
    if (!whole.defined()) return;
    if (!whole.is_alias_of(value)) whole.copy_(found);
    gradients.push_back(gradient);
    settings.push_back(step.parameters[i]);
  });
  inner_->step(gradients, settings, step.gradient_scale);
  if (division_->ranks() == 1) return;
  for_each_used(
      [&](size_t i, const Tensor& value, const Tensor& whole) { division_->scatter(i, whole, value, owners_[i]); });
}

void GatheredOptimizer::share(const Group& group) {
  data_ = group;
  inner_->share(group);
}

Tensor GatheredOptimizer::collected(const Kept& kept, const Tensor& own) const {
  if (kept.parameter) {
    const size_t i = *kept.parameter;
    const Tensor whole = own.defined() ? own.contiguous().clone() : at::empty(kept.sizes, kept.options);
    division_->send_to_first(i, whole, owners_[i]);
    return whole;
  }
  if (kept.entries.empty()) return own.clone();
  const Tensor whole = at::zeros({elements_of(kept.sizes)}, kept.options);
  visit_entries(kept, [&](size_t i, int64_t begin, int64_t own_begin, int64_t count) {
    if (division_->counts(i)) whole.narrow(0, begin, count).copy_(own.view({-1}).narrow(0, own_begin, count));
  });
  division_->group().sum(whole);
  division_->pipeline().sum(whole);
  return whole.view(kept.sizes);
}

void GatheredOptimizer::collect() {
  inner_->collect();
  collected_.clear();
  if (data_.rank() > 0) return;
  const NamedTensors state = inner_->state();
  const std::map<std::string, Tensor> own(state.begin(), state.end());
  for (const Kept& kept : kept_) {
    const auto found = own.find(kept.name);
    Tensor whole = collected(kept, found == own.end() ? Tensor() : found->second);
    if (division_->is_first()) collected_.emplace_back(kept.name, std::move(whole));
  }
}

void GatheredOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  NamedTensors own;
  for (const auto& [name, like] : inner_->state()) {
    const Kept* kept = find_by(kept_, &Kept::name, name);
    const Tensor& whole = find_tensor(tensors, name, origin);
    if (kept == nullptr || kept->entries.empty() || whole.numel() != elements_of(kept->sizes)) {
      own.emplace_back(name, whole);
      continue;
    }
    std::vector<Tensor> entries{at::empty({0}, whole.options())};
    visit_entries(*kept, [&](size_t, int64_t begin, int64_t, int64_t count) {
      entries.push_back(whole.view({-1}).narrow(0, begin, count));
    });
    own.emplace_back(name, at::cat(entries).view(like.sizes()));
  }
  inner_->load_state(own, origin);
}

}  // namespace plumb
