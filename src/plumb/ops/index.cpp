#include "plumb/ops/index.h"

#include <algorithm>
#include <mutex>

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
    const uint64_t hash = hash_of(ids);
    if (Tensor known = find(hash, device, ids); known.defined()) return known;
    // Without the lock, so that threads do not wait for each other's copies.
    Tensor tensor = moved(at::tensor(at::ArrayRef<int64_t>(ids), at::TensorOptions(at::kLong)), device);
    const std::scoped_lock lock(mutex_);
    while (!entries_.empty() && (entries_.size() >= kEntries || elements_ + ids.size() > kElements)) drop_oldest();
    entries_.push_back({hash, ++clock_, ids, tensor});
    elements_ += ids.size();
    return tensor;
  }

 private:
  static constexpr size_t kEntries = 128;
  static constexpr size_t kElements = size_t{1} << 22;

  struct Entry {
    uint64_t hash, used;
    std::vector<int64_t> ids;
    Tensor tensor;
  };

  static uint64_t hash_of(const std::vector<int64_t>& ids) {
    uint64_t hash = ids.size();
    for (const int64_t id : ids) hash = (hash ^ (hash >> 29) ^ static_cast<uint64_t>(id)) * 0x9E3779B97F4A7C15;
    return hash;
  }

  Tensor find(uint64_t hash, const at::Device& device, const std::vector<int64_t>& ids) {
    const std::scoped_lock lock(mutex_);
    for (Entry& entry : entries_) {
      if (entry.hash != hash || entry.tensor.device() != device || entry.ids != ids) continue;
      entry.used = ++clock_;
      return entry.tensor;
    }
    return {};
  }

  void drop_oldest() {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const Entry& a, const Entry& b) { return a.used < b.used; });
    elements_ -= oldest->ids.size();
    entries_.erase(oldest);
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
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
