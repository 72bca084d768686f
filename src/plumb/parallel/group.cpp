#include "plumb/parallel/group.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/ops/flatten.h"
#include "plumb/parallel/connection.h"

namespace plumb {
namespace {

/// The values of x in the form Gloo needs, contiguous in host memory: x's own memory if possible.
Tensor on_host(const Tensor& x) { return x.detach().to(at::kCPU).contiguous(); }

void write_back(const Tensor& host, const Tensor& x) {
  if (host.data_ptr() != x.data_ptr()) x.detach().copy_(host);
}

/// The same memory as bytes: Gloo supports few types.
Tensor as_bytes(const Tensor& host) { return host.view({-1}).view(at::kByte); }
std::vector<Tensor> as_bytes(const std::vector<Tensor>& hosts) {
  std::vector<Tensor> bytes;
  bytes.reserve(hosts.size());
  for (const Tensor& host : hosts) bytes.push_back(as_bytes(host));
  return bytes;
}

std::vector<Tensor> room_for(const Tensor& host, int64_t count) {
  std::vector<Tensor> room;
  for (int64_t i = 0; i < count; ++i) room.push_back(at::empty_like(host));
  return room;
}

std::vector<Tensor> on_device_of(const Tensor& x, std::vector<Tensor> hosts) {
  for (Tensor& host : hosts) host = host.to(x.device());
  return hosts;
}

int64_t bytes_of(const Tensor& x) { return x.numel() * static_cast<int64_t>(x.element_size()); }

/// The first fact in which `theirs` differs, as a sentence; empty if all are equal.
std::string difference(const Facts& ours, const Facts& theirs, const std::string& who, const std::string& zero) {
  const auto value_in = [](const Facts& facts, const std::string& name) {
    const auto entry = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
    return entry == facts.end() ? std::string("(none)") : entry->second;
  };
  for (const Facts* facts : {&ours, &theirs}) {
    for (const auto& [name, value] : *facts) {
      const std::string here = value_in(ours, name), there = value_in(theirs, name);
      if (here != there) return fmt::format("{} = {} in {}, but {} in {}", name, there, who, here, zero);
    }
  }
  return {};
}

struct SharedGroup : torch::CustomClassHolder {
  Group group;
};

c10::intrusive_ptr<SharedGroup> shared_group(const Group& group) {
  auto made = c10::make_intrusive<SharedGroup>();
  made->group = group;
  return made;
}

/// x, or its sum over the ranks. The derivative of a rank's x is that of its result, or the sum of all ranks': a
/// function of the same kind, to any order.
template <bool kSums, bool kSumsDerivatives>
class Reduction : public torch::autograd::Function<Reduction<kSums, kSumsDerivatives>> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const c10::intrusive_ptr<SharedGroup>& shared) {
    ctx->saved_data["group"] = c10::IValue::make_capsule(shared);
    if constexpr (!kSums) return x.detach();
    Tensor sum = x.detach().clone();
    shared->group.sum(sum);
    return sum;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grad) {
    const auto shared = c10::static_intrusive_pointer_cast<SharedGroup>(ctx->saved_data["group"].toCapsule());
    return {Reduction<kSumsDerivatives, kSums>::apply(grad[0], shared), Tensor()};
  }
};

}  // namespace

int64_t Group::rank() const { return connection_ ? connection_->rank() : 0; }
int64_t Group::size() const { return connection_ ? connection_->size() : 1; }
int64_t Group::neighbors() const { return connection_ ? connection_->membership().neighbors() : 1; }
void Group::leave() const {
  if (connection_) connection_->leave();
}
void Group::fail(const std::string& reason) const {
  if (connection_) connection_->membership().fail(reason);
}
ExchangeCost Group::cost() const { return connection_ ? connection_->cost() : ExchangeCost(); }

void Group::sum(const Tensor& x) const {
  if (!connection_ || x.numel() == 0) return;
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  const Tensor host = on_host(half ? x.to(at::kFloat) : x);
  std::vector<Tensor> tensors{host};
  connection_->exchange(bytes_of(host), [&](auto& gloo) { return gloo.allreduce(tensors); });
  write_back(host, x);
}

std::vector<Tensor> Group::sum_coalesced(const std::vector<Tensor>& tensors) const {
  if (!connection_ || tensors.empty()) return tensors;
  const Tensor flat = joined(tensors);
  sum(flat);
  return split_like(flat, tensors);
}

std::vector<double> Group::sums(const std::vector<double>& values) const {
  if (!connection_) return values;
  const Tensor sums = at::tensor(values, at::kDouble);
  sum(sums);
  const auto* first = sums.data_ptr<double>();
  return {first, first + values.size()};
}

bool Group::any(bool condition) const { return sums({condition ? 1.0 : 0.0})[0] > 0; }

Tensor Group::all_reduce(const Tensor& x) const {
  return connection_ ? Reduction<true, true>::apply(x, shared_group(*this)) : x;
}

Tensor Group::copy_to_region(const Tensor& x) const {
  return connection_ ? Reduction<false, true>::apply(x, shared_group(*this)) : x;
}

Tensor Group::reduce_from_region(const Tensor& x) const {
  return connection_ ? Reduction<true, false>::apply(x, shared_group(*this)) : x;
}

void Group::broadcast(const Tensor& x, int64_t root) const {
  require_rank(root);
  if (!connection_ || x.numel() == 0) return;
  const Tensor host = on_host(x);
  std::vector<Tensor> tensors{as_bytes(host)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  connection_->exchange(bytes_of(host), [&](auto& gloo) { return gloo.broadcast(tensors, options); });
  write_back(host, x);
}

std::string Group::broadcast(const std::string& text, int64_t root) const {
  const Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  broadcast(size, root);
  const Tensor bytes = at::zeros({size.item<int64_t>()}, at::kByte);
  if (rank() == root) std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
  broadcast(bytes, root);
  return {reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()), static_cast<size_t>(bytes.numel())};
}

std::vector<Tensor> Group::gather(const Tensor& x, int64_t root) const {
  require_rank(root);
  if (!connection_) return {x.detach()};
  const Tensor host = on_host(x);
  const std::vector<Tensor> parts = room_for(host, rank() == root ? size() : 0);
  std::vector<Tensor> inputs{as_bytes(host)};
  std::vector<std::vector<Tensor>> outputs;
  if (rank() == root) outputs.push_back(as_bytes(parts));
  c10d::GatherOptions options;
  options.rootRank = root;
  if (x.numel() > 0)
    connection_->exchange(bytes_of(host), [&](auto& gloo) { return gloo.gather(outputs, inputs, options); });
  return on_device_of(x, parts);
}

std::vector<Tensor> Group::all_gather(const Tensor& x) const {
  if (!connection_) return {x.detach()};
  const Tensor host = on_host(x);
  const std::vector<Tensor> parts = room_for(host, size());
  std::vector<Tensor> inputs{as_bytes(host)};
  std::vector<std::vector<Tensor>> outputs{as_bytes(parts)};
  if (x.numel() > 0) connection_->exchange(bytes_of(host), [&](auto& gloo) { return gloo.allgather(outputs, inputs); });
  return on_device_of(x, parts);
}

Tensor Group::all_to_all(const Tensor& x) const {
  if (x.dim() != 1 || x.numel() % size() != 0)
    throw Error(fmt::format("{} elements cannot be divided among {} ranks", x.numel(), size()));
  if (!connection_ || x.numel() == 0) return x.detach();
  const Tensor host = on_host(x);
  const Tensor received = at::empty_like(host);
  Tensor input = as_bytes(host), output = as_bytes(received);
  std::vector<int64_t> equal;
  connection_->exchange(bytes_of(host), [&](auto& gloo) { return gloo.alltoall_base(output, input, equal, equal); });
  return received.to(x.device());
}

void Group::scatter(const std::vector<Tensor>& parts, const Tensor& x, int64_t root) const {
  require_rank(root);
  if (rank() == root) {
    if (static_cast<int64_t>(parts.size()) != size())
      throw Error(fmt::format("cannot scatter {} parts to {} ranks", parts.size(), size()));
    for (const Tensor& part : parts) {
      if (part.sizes() != x.sizes() || part.scalar_type() != x.scalar_type())
        throw Error("a part to scatter differs in shape or type from the tensor that receives it");
    }
  }
  if (!connection_) {
    x.detach().copy_(parts[0]);
    return;
  }
  if (x.numel() == 0) return;
  const Tensor host = on_host(x);
  std::vector<Tensor> outputs{as_bytes(host)};
  std::vector<std::vector<Tensor>> inputs;
  if (rank() == root) {
    inputs.emplace_back();
    for (const Tensor& part : parts) inputs[0].push_back(as_bytes(on_host(part)));
  }
  c10d::ScatterOptions options;
  options.rootRank = root;
  connection_->exchange(bytes_of(host), [&](auto& gloo) { return gloo.scatter(outputs, inputs, options); });
  write_back(host, x);
}

void Group::send(const Tensor& x, int64_t to) const {
  require_other(to);
  if (x.numel() == 0) return;
  const Tensor host = on_host(x);
  std::vector<Tensor> tensors{as_bytes(host)};
  connection_->exchange(
      bytes_of(host), [&](auto& gloo) { return gloo.send(tensors, static_cast<int>(to), 0); }, true);
}

void Group::receive(const Tensor& x, int64_t from) const {
  require_other(from);
  if (x.numel() == 0) return;
  const Tensor host = on_host(x);
  std::vector<Tensor> tensors{as_bytes(host)};
  connection_->exchange(
      bytes_of(host), [&](auto& gloo) { return gloo.recv(tensors, static_cast<int>(from), 0); }, true);
  write_back(host, x);
}

void Group::barrier() const {
  if (connection_) connection_->exchange(0, [](auto& gloo) { return gloo.barrier(); });
}

void Group::require_same(const Facts& facts) const {
  if (!connection_) return;
  const std::string own = connection_->membership().own_name();
  const Json zero = Json::parse(broadcast(Json{{"name", own}, {"facts", facts}}.dump()));
  const std::string verdict = difference(zero.at("facts").get<Facts>(), facts, own, zero.at("name"));
  const std::vector<Tensor> differ = all_gather(at::full({1}, !verdict.empty(), at::kByte));
  for (int64_t rank = 0; rank < size(); ++rank) {
    if (differ[static_cast<size_t>(rank)].item<bool>()) {
      throw Error("the processes of this run differ: " + broadcast(verdict, rank),
                  "start all of them with the same program, configuration and data");
    }
  }
}

Group Group::split(int64_t color) const {
  if (!connection_) return {};
  const std::vector<Tensor> colors = all_gather(at::full({1}, color, at::kLong));
  int64_t new_rank = 0;
  int64_t members = 0;
  for (int64_t other = 0; other < size(); ++other) {
    if (colors[static_cast<size_t>(other)].item<int64_t>() != color) continue;
    if (other < rank()) ++new_rank;
    ++members;
  }
  const std::string name = fmt::format("split {} color {}", connection_->next_split(), color);
  return members == 1 ? Group() : Group(connection_->among(name, new_rank, members));
}

void Group::require_rank(int64_t rank) const {
  if (rank < 0 || rank >= size()) throw Error(fmt::format("no rank {} in a group of {}", rank, size()));
}

void Group::require_other(int64_t rank) const {
  require_rank(rank);
  if (rank == this->rank()) throw Error(fmt::format("rank {} cannot exchange with itself", rank));
}

}  // namespace plumb
