#include "plumb/nn/parameters.h"

#include <ATen/native/Resize.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/nn/layer_id.h"

namespace plumb {
namespace {

thread_local bool without_memory = false;

}  // namespace

WithoutMemory::WithoutMemory(bool applies) : before_(std::exchange(without_memory, applies)) {}
WithoutMemory::~WithoutMemory() { without_memory = before_; }

Tensor empty_without_memory(at::IntArrayRef shape, const at::TensorOptions& options) {
  const Tensor value = at::empty(shape, options);
  set_memory(value, false);
  return value;
}

void set_memory(const Tensor& x, bool present) {
  at::native::resize_bytes_cpu(x.storage().unsafeGetStorageImpl(), present ? x.nbytes() : 0);
}

Tensor Parameters::add(const std::string& name, at::IntArrayRef shape, Role role) {
  if (find(name) != nullptr) throw Error(fmt::format("parameter '{}' is declared twice", name));
  Tensor value = without_memory ? empty_without_memory(shape, options_) : at::zeros(shape, options_);
  value.requires_grad_(true);
  all_.push_back({name, role, value});
  return value;
}

Tensor Parameters::add_stacked(const std::string& name, at::IntArrayRef shape, const std::vector<int64_t>& parts,
                               Role role) {
  Tensor value = add(name, shape, role);
  all_.back().parts = parts;
  return value;
}

Tensor Parameters::add_constant(const std::string& name, at::IntArrayRef shape, double initial) {
  Tensor value = add(name, shape, Role::constant);
  all_.back().initial = initial;
  return value;
}

Tensor Parameters::add_constant(const std::string& name, const Tensor& initial) {
  Tensor value = add(name, initial.sizes(), Role::constant);
  all_.back().initial_values = initial;
  return value;
}

Tensor Parameters::add_drawn(const std::string& name, at::IntArrayRef shape, std::function<double(Random&)> draw) {
  Tensor value = add(name, shape, Role::constant);
  all_.back().draw = std::move(draw);
  return value;
}

Tensor Parameters::add_adapter(const std::string& name, at::IntArrayRef shape, double deviation) {
  Tensor value = add(name, shape, Role::adapter);
  all_.back().initial = deviation;
  return value;
}

Tensor Parameters::add_buffer(const std::string& name, at::IntArrayRef shape, double initial) {
  if (find_by(buffers_, &Parameter::name, name) != nullptr)
    throw Error(fmt::format("buffer '{}' is declared twice", name));
  Tensor value = at::full(shape, initial, options_);
  buffers_.push_back({name, Role::constant, value, initial});
  return value;
}

void Parameters::allocate() {
  if (without_memory) return drop_flat();
  flat_ = at::zeros({count()}, options_);
  const std::vector<Tensor> views = split(flat_);
  for (size_t i = 0; i < all_.size(); ++i) all_[i].value.set_data(views[i]);
}

const Parameter* Parameters::find(const std::string& name) const { return find_by(all_, &Parameter::name, name); }

const Parameter& Parameters::at(const std::string& name) const {
  if (const Parameter* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const Parameter& parameter : all_) names.push_back(parameter.name);
  throw Error(fmt::format("the model has no parameter '{}'", name),
              fmt::format("the closest is '{}'", nearest(name, names)));
}

std::vector<Tensor> Parameters::values() const {
  std::vector<Tensor> values;
  values.reserve(all_.size());
  for (const Parameter& parameter : all_) values.push_back(parameter.value);
  return values;
}

int64_t Parameters::count() const {
  int64_t total = 0;
  for (const Parameter& parameter : all_) total += parameter.value.numel();
  return total;
}

Parameters Parameters::with_values(const std::vector<Tensor>& values, const Tensor& flat) const {
  Parameters others(type(), flat.device());
  others.all_ = all_;
  others.buffers_ = buffers_;
  for (size_t i = 0; i < all_.size(); ++i) others.all_[i].value = values[i];
  others.flat_ = flat;
  return others;
}

Parameters Parameters::subset(const std::vector<size_t>& indices) const {
  Parameters subset(type(), device());
  for (const size_t i : indices) subset.all_.push_back(all_[i]);
  subset.buffers_ = buffers_;
  subset.drop_flat();
  if (!has_flat() || indices.empty() || indices.back() - indices.front() + 1 != indices.size()) return subset;
  int64_t begin = 0;
  for (size_t i = 0; i < indices.front(); ++i) begin += all_[i].value.numel();
  subset.flat_ = flat_.narrow(0, begin, subset.count());
  return subset;
}

void Parameters::drop_flat() { flat_ = at::empty({0}, options_); }

void Parameters::make_flat() {
  const at::NoGradGuard no_graph;
  std::vector<Tensor> values;
  for (const Parameter& parameter : all_) values.push_back(parameter.value.detach());
  allocate();
  for (size_t i = 0; i < all_.size(); ++i) all_[i].value.copy_(values[i]);
}

bool multiplies_each_token(const Parameter& parameter) {
  switch (parameter.role) {
    case Role::weight:
    case Role::stacked_qkv:
    case Role::attention_output:
    case Role::feed_forward_input:
    case Role::feed_forward_output:
    case Role::adapter:
      return parameter.value.dim() == 2;
    default:
      return false;
  }
}

std::vector<size_t> order_of_layers(const Parameters& parameters) {
  std::map<LayerId, size_t> begins;
  std::vector<std::pair<size_t, size_t>> places;  // where its layer begins, and its own
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(parameters.all()[i].name);
    const bool of_layer = id && id->layer;
    places.emplace_back(of_layer ? begins.try_emplace({id->stack, id->layer}, i).first->second : i, i);
  }
  std::sort(places.begin(), places.end());
  std::vector<size_t> order;
  for (const auto& [layer, parameter] : places) order.push_back(parameter);
  return order;
}

}  // namespace plumb
