#include "plumb/evaluate/request_batches.h"

#include <algorithm>
#include <span>

namespace plumb {
namespace {

constexpr size_t kWorthSharing = 16;  // tokens: reading a shorter prefix separately costs more than it saves

/// A group and its cost.
struct MeasuredGroup {
  RequestGroup group;
  std::span<const int32_t> context;
  size_t after = 0;  // tokens that are read after the context

  [[nodiscard]] size_t tokens() const { return context.size() + after; }
};

std::vector<MeasuredGroup> measured_groups(const std::vector<TokenRequest>& requests) {
  std::vector<MeasuredGroup> groups;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i == 0 || requests[i].context != requests[i - 1].context) groups.push_back({.context = requests[i].context});
    groups.back().group.push_back(i);
    groups.back().after += requests[i].continuation.size() - 1;
  }
  return groups;
}

/// The length of the common prefix of two contexts.
size_t common_beginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t limit = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(limit), b.begin()).first -
                             a.begin());
}

/// A batch under construction.
class OpenBatch {
 public:
  explicit OpenBatch(const MeasuredGroup& first) : common_(first.context.size() - 1) { take(first, common_); }

  /// Adds a group unless more than `limit` tokens would be read.
  bool add(const MeasuredGroup& group, size_t limit) {
    const size_t common = shared_with(group);
    const size_t rows = batch_.groups.size() + 1;
    const size_t all = tokens_ + group.tokens();
    if (all - worth(common) * (rows - 1) > limit) return false;
    take(group, common);
    return true;
  }

  RequestBatch close() && {
    batch_.common = batch_.groups.size() > 1 ? worth(common_) : 0;
    return std::move(batch_);
  }

 private:
  static size_t worth(size_t common) { return common < kWorthSharing ? 0 : common; }

  [[nodiscard]] size_t shared_with(const MeasuredGroup& group) const {
    return std::min({common_, common_beginning(context_, group.context), group.context.size() - 1});
  }

  void take(const MeasuredGroup& group, size_t common) {
    common_ = common;
    context_ = group.context;
    tokens_ += group.tokens();
    batch_.groups.push_back(group.group);
  }

  RequestBatch batch_;
  std::span<const int32_t> context_;  // of the last group
  size_t common_;                     // length of the common prefix of all contexts
  size_t tokens_ = 0;                 // to read without sharing a prefix
};

}  // namespace

std::vector<RequestBatch> plan_requests(const std::vector<TokenRequest>& requests, int64_t batch_tokens) {
  std::vector<MeasuredGroup> groups = measured_groups(requests);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const MeasuredGroup& a, const MeasuredGroup& b) { return a.tokens() > b.tokens(); });
  std::vector<RequestBatch> batches;
  for (size_t i = 0; i < groups.size();) {
    OpenBatch batch(groups[i++]);
    while (i < groups.size() && batch.add(groups[i], static_cast<size_t>(batch_tokens))) ++i;
    batches.push_back(std::move(batch).close());
  }
  return batches;
}

}  // namespace plumb
