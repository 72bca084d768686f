// A table with one row per position, computed on demand and kept.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// Grows by at least doubling, so decoding recomputes it only O(log length) times. The layers of a model and its
/// decoding threads share one table per element type and device; reading existing rows takes no lock.
class GrowingTable {
 public:
  /// compute(length): the rows of positions 0 … length − 1, (length, …), in float64 on the CPU. The first table has
  /// `first` rows.
  explicit GrowingTable(std::function<Tensor(int64_t length)> compute, int64_t first = 256)
      : compute_(std::move(compute)), first_(first) {}
  GrowingTable(const GrowingTable&) = delete;
  GrowingTable& operator=(const GrowingTable&) = delete;

  /// At least `length` rows, in the type and on the device of `options`.
  [[nodiscard]] Tensor rows(int64_t length, const at::TensorOptions& options) const {
    if (Tensor table = find(length, options); table.defined()) return table;
    const std::scoped_lock lock(mutex_);
    if (Tensor table = find(length, options); table.defined()) return table;  // another thread got here first
    const int64_t known = exact_.defined() ? exact_.size(0) : 0;
    if (known == 0 || known < length) {
      int64_t wanted = std::max(first_, 2 * known);
      while (wanted < length) wanted *= 2;
      exact_ = compute_(wanted);
    }
    tables_.push_back(std::make_unique<Table>(Table{exact_.to(options), newest_.load(std::memory_order_relaxed)}));
    newest_.store(tables_.back().get(), std::memory_order_release);
    return tables_.back()->rows;
  }

 private:
  /// Never changed or removed once published; the older tables of a type together are no larger than its newest.
  struct Table {
    Tensor rows;
    const Table* older;
  };

  [[nodiscard]] Tensor find(int64_t length, const at::TensorOptions& options) const {
    for (const Table* table = newest_.load(std::memory_order_acquire); table != nullptr; table = table->older) {
      const Tensor& rows = table->rows;
      if (rows.size(0) >= length && rows.dtype() == options.dtype() && rows.device() == options.device()) return rows;
    }
    return {};
  }

  std::function<Tensor(int64_t)> compute_;
  int64_t first_;
  mutable std::mutex mutex_;  // serializes writers
  mutable Tensor exact_;
  mutable std::vector<std::unique_ptr<const Table>> tables_;
  mutable std::atomic<const Table*> newest_ = nullptr;
};

}  // namespace plumb
