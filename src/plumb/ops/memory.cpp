#include "plumb/ops/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "plumb/base/process_memory.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {
namespace {

/// Allocates blocks from one reserved address range. Untouched pages cost nothing. Pages are huge where the system has
/// such pages: passes over large tensors are then limited by memory, not by translating addresses.
class Region {
 public:
  explicit Region(size_t size) : size_(size) {
    void* place = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return;
    begin_ = static_cast<char*>(place);
#ifdef MADV_HUGEPAGE
    ::madvise(place, size, MADV_HUGEPAGE);  // a wish: the result is the same without
#endif
  }
  [[nodiscard]] bool usable() const { return begin_ != nullptr; }
  [[nodiscard]] bool holds(const void* place) const { return place >= begin_ && place < begin_ + size_; }
  [[nodiscard]] size_t in_use() const { return in_use_; }

  /// Null if there is not enough space.
  void* take(size_t wanted) {
    const size_t bytes = (wanted + kGrain - 1) / kGrain * kGrain;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto fit = by_size_.lower_bound({bytes, nullptr});
    char* block = nullptr;
    if (fit != by_size_.end()) {
      block = fit->second;
      const size_t rest = fit->first - bytes;
      erase_free(block);
      if (rest > 0) insert_free(block + bytes, rest);
    } else {
      if (bytes > size_ - top_) return nullptr;
      block = begin_ + top_;
      top_ += bytes;
    }
    taken_.emplace(block, bytes);
    in_use_ += bytes;
    return block;
  }

  void give_back(void* place) {
    auto* block = static_cast<char*>(place);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto entry = taken_.find(block);
    size_t bytes = entry->second;
    taken_.erase(entry);
    in_use_ -= bytes;
    const auto next = free_.find(block + bytes);
    if (next != free_.end()) {
      bytes += next->second;
      erase_free(next->first);
    }
    auto before = free_.lower_bound(block);
    if (before != free_.begin() && (--before)->first + before->second == block) {
      block = before->first;
      bytes += before->second;
      erase_free(block);
    }
    if (block + bytes == begin_ + top_) {
      top_ -= bytes;
    } else {
      insert_free(block, bytes);
    }
  }

  /// Makes all free blocks untouched pages.
  void forget_free() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [block, bytes] : free_) ::madvise(block, bytes, MADV_DONTNEED);
    ::madvise(begin_ + top_, size_ - top_, MADV_DONTNEED);
  }

 private:
  static constexpr size_t kGrain = 4096;

  void insert_free(char* block, size_t bytes) {
    free_.emplace(block, bytes);
    by_size_.emplace(bytes, block);
  }
  void erase_free(char* block) {
    const auto entry = free_.find(block);
    by_size_.erase({entry->second, block});
    free_.erase(entry);
  }

  char* begin_ = nullptr;
  size_t size_;
  size_t top_ = 0;  // bytes up to the end of the last allocated block
  std::map<char*, size_t> free_, taken_;
  std::set<std::pair<size_t, char*>> by_size_;  // free blocks
  std::atomic<size_t> in_use_ = 0;
  std::mutex mutex_;
};

/// As large as the machine's memory. Never destroyed, because tensors may outlive every other object.
Region& region() {
  static Region& instance = *new Region(static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE));
  return instance;
}

void release(void* place) {
  if (place == nullptr) return;
  if (region().holds(place)) {
    region().give_back(place);
  } else {
    std::free(place);
  }
}

class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) PLUMB_ALLOCATE_CONST override {
    constexpr size_t kLarge = size_t{1} << 15;
    constexpr size_t kAlignment = 64;
    void* place = bytes >= kLarge ? region().take(bytes) : nullptr;
    if (place == nullptr && bytes > 0 && ::posix_memalign(&place, kAlignment, bytes) != 0) throw std::bad_alloc();
    return {place, place, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  PLUMB_COPY_DATA
};

}  // namespace

void keep_tensor_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  static TensorAllocator allocator;
  if (region().usable()) c10::SetCPUAllocator(&allocator, /*priority=*/1);
#endif
}

void return_tensor_memory() {
  if (region().usable()) region().forget_free();
}

int64_t memory_in_use() { return allocated_memory(static_cast<int64_t>(region().in_use())); }

int64_t available_memory() { return plumb::available_memory(memory_in_use()); }

namespace {

/// The type of two unused arguments, which differs between LibTorch versions.
template <typename Total>
Total total_of(void (c10::MemoryReportingInfoBase::*)(void*, int64_t, Total, Total, c10::Device));
using Total = decltype(total_of(&c10::MemoryReportingInfoBase::reportMemoryUsage));

/// Adds up the reports of a device's allocator.
struct Reports final : c10::MemoryReportingInfoBase {
  explicit Reports(const at::Device& counted) : device(counted) {}

  void reportMemoryUsage(void*, int64_t size, Total, Total, c10::Device where) override {
    if (where == device) bytes += size;  // negative when memory is freed
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

  at::Device device;
  std::atomic<int64_t> bytes = 0;
};

}  // namespace

struct HeldMemory::Count {
  explicit Count(const at::Device& device)
      : reports(std::make_shared<Reports>(device)), guard(c10::DebugInfoKind::PROFILER_STATE, reports) {}
  std::shared_ptr<Reports> reports;
  c10::DebugInfoGuard guard;
};

HeldMemory::HeldMemory(const at::Device& device) {
  if (device.is_cpu()) {
    before_ = memory_in_use();
  } else {
    count_ = std::make_unique<Count>(device);
  }
}
HeldMemory::~HeldMemory() = default;

int64_t HeldMemory::bytes() const { return count_ ? count_->reports->bytes.load() : memory_in_use() - before_; }

}  // namespace plumb::ops
