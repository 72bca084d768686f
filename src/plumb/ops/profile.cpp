#include "plumb/ops/profile.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>

#include "plumb/base/error.h"

namespace plumb::ops {
namespace {

thread_local Profile* current_profile = nullptr;

}  // namespace

/// What autograd's engine tells of the nodes that it computes.
class Profile::Node {
 public:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& /*node*/) {
    if (current_profile != nullptr && current_profile->begin()) current_profile->watch_ = Stopwatch();
    return nullptr;
  }

  static void end(const at::RecordFunction& node, at::ObserverContext* /*context*/) {
    Profile* profile = current_profile;
    if (profile == nullptr || --profile->depth_ > 0) return;
    const double seconds = profile->watch_.seconds();
    const int64_t number = node.seqNr();
    auto owner = profile->owners_.end();
    if (number >= 0) {
      owner = profile->owners_.upper_bound(static_cast<uint64_t>(number));
      const bool found =
          owner != profile->owners_.begin() && static_cast<uint64_t>(number) < std::prev(owner)->second.end;
      owner = found ? std::prev(owner) : profile->owners_.end();
    }
    if (owner == profile->owners_.end()) return profile->record(node.name(), seconds, 0, 0);
    Owner& own = owner->second;
    const Cost cost = own.counted ? Cost() : own.cost;
    own.counted = true;
    profile->record(std::string(own.name) + ", backward", seconds, cost.backward_operations, cost.backward_bytes);
  }
};

Cost product_cost(int64_t rows, int64_t in, int64_t out, int64_t bytes_per_number) {
  const auto m = static_cast<double>(rows), k = static_cast<double>(in), n = static_cast<double>(out);
  const double operations = 2 * m * k * n;
  const double bytes = static_cast<double>(bytes_per_number) * (m * k + k * n + m * n);
  return {operations, bytes, 2 * operations, 2 * bytes};
}

Cost pass_cost(const Tensor& x, int64_t vectors, int64_t backward_vectors) {
  const auto bytes = static_cast<double>(x.nbytes());
  return {0, static_cast<double>(vectors) * bytes, 0, static_cast<double>(backward_vectors) * bytes};
}

Profile::Profile() {
  if (current_profile != nullptr) throw Error("a thread can be profiled only once at a time");
  current_profile = this;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&Node::begin, &Node::end).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

Profile::~Profile() {
  at::removeCallback(handle_);
  current_profile = nullptr;
}

std::vector<Profile::Operation> Profile::operations() const {
  std::vector<Operation> all;
  for (const auto& [name, operation] : found_) all.push_back(operation);
  std::stable_sort(all.begin(), all.end(),
                   [](const Operation& a, const Operation& b) { return a.seconds > b.seconds; });
  return all;
}

void Profile::record(const std::string& name, double seconds, double operations, double bytes) {
  Operation& operation = found_[name];
  operation.name = name;
  ++operation.calls;
  operation.seconds += seconds;
  operation.operations += operations;
  operation.bytes += bytes;
}

void Profile::own_nodes(uint64_t first, const char* name, const Cost& cost) {
  const uint64_t end = at::sequence_number::peek();
  if (end > first) owners_[first] = {end, name, cost};
}

Profile* Timed::current() { return current_profile; }

void Timed::begin(const char* name, const Cost& cost) {
  outermost_ = profile_->begin();
  if (!outermost_) return;
  name_ = name;
  cost_ = cost;
  first_node_ = at::sequence_number::peek();
  profile_->watch_ = Stopwatch();
}

void Timed::end() {
  --profile_->depth_;
  if (!outermost_) return;
  profile_->record(name_, profile_->watch_.seconds(), cost_.operations, cost_.bytes);
  profile_->own_nodes(first_node_, name_, cost_);
}

}  // namespace plumb::ops
