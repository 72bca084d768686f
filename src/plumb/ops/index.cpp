#include "plumb/ops/index.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

namespace plumb::ops {
namespace {

/// Copies a host tensor to the device; to a GPU asynchronously, from pinned memory.
Tensor moved(const Tensor& host, const at::Device& device) {
  return device.is_cuda() ? host.pin_memory().to(device, /*non_blocking=*/true) : host.to(device);
}

/// A cache of recently used indices on all devices; drops the least recently used.
class RecentIndices {
 public:
  Tensor get(const at::Device& device, const std::vector<int64_t>& ids) {
    const Key key(device.type(), device.index(), ids);
    if (Tensor known = find(key); known.defined()) return known;
    // Without the lock, so that threads do not wait for each other's copies.
    const Tensor tensor = moved(at::tensor(at::ArrayRef<int64_t>(ids), at::TensorOptions(at::kLong)), device);
    const std::scoped_lock lock(mutex_);
    while (!entries_.empty() && (entries_.size() >= kEntries || elements_ + ids.size() > kElements)) drop_oldest();
    if (entries_.insert_or_assign(key, Entry{tensor, ++clock_}).second) elements_ += ids.size();
    return tensor;
  }

 private:
  static constexpr size_t kEntries = 128;
  static constexpr size_t kElements = size_t{1} << 22;

  using Key = std::tuple<at::DeviceType, at::DeviceIndex, std::vector<int64_t>>;
  struct Entry {
    Tensor tensor;
    uint64_t used;
  };

  Tensor find(const Key& key) {
    const std::scoped_lock lock(mutex_);
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return {};
    entry->second.used = ++clock_;
    return entry->second.tensor;
  }

  void drop_oldest() {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    elements_ -= std::get<2>(oldest->first).size();
    entries_.erase(oldest);
  }

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  size_t elements_ = 0;
  uint64_t clock_ = 0;
};

/// Never destroyed: at exit, a device may already be gone.
RecentIndices& recent() {
  static RecentIndices& indices = *new RecentIndices;
  return indices;
}

}  // namespace

Tensor index_beside(const Tensor& like, const std::vector<int64_t>& ids) {
  if (like.device().is_cpu()) return at::tensor(at::ArrayRef<int64_t>(ids), at::TensorOptions(at::kLong));
  return recent().get(like.device(), ids);
}

Tensor values_beside(const Tensor& like, const std::vector<double>& values) {
  const Tensor here = at::tensor(at::ArrayRef<double>(values), at::TensorOptions(at::kDouble)).to(like.scalar_type());
  return like.device().is_cpu() ? here : moved(here, like.device());
}

}  // namespace plumb::ops
