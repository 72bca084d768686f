// The batches of an epoch, planned without loading or sorting a large corpus as a whole.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plumb/data/batches.h"
#include "plumb/data/corpus_mixture.h"
#include "plumb/data/stream_cut.h"

namespace plumb {

/// The inputs of a plan other than the examples and the epoch.
struct PlanSettings {
  int64_t tokens = 0;  // at most, per batch; ignored for a stream
  uint64_t seed = 0;
  int64_t largest = int64_t{1} << 22;              // the most examples that are planned as a whole
  int64_t window = int64_t{1} << 20;               // examples per window if there are more
  std::optional<CorpusMixture> mixture = {};       // the draws of an epoch; absent: every example once
  std::optional<StreamCut> stream = std::nullopt;  // how to cut a stream whose columns are the examples
};

/// One epoch of training: every example once, or the draws of a mixture, which may repeat examples. Up to `largest`
/// examples are planned by a single call of `plan_batches`. More examples are put in random order (base/permutation.h)
/// and cut into windows, and each window is planned separately, on demand. The batches of a stream are its segments, in
/// order. Every batch is a function of the arguments and its number only. Thread-safe.
class BatchPlan {
 public:
  using Batches = std::vector<std::vector<int64_t>>;

  /// Plans all windows once to count their batches. Throws Error if a single example is larger than a batch, or if the
  /// mixture has a different number of examples.
  BatchPlan(const ExampleCosts& costs, const PlanSettings& settings, int64_t epoch);

  [[nodiscard]] int64_t epoch() const { return epoch_; }

  /// The number of batches.
  [[nodiscard]] int64_t size() const { return first_.back(); }

  /// The `count` batches from `first` on, or fewer at the end of the epoch.
  [[nodiscard]] Batches batches(int64_t first, int64_t count) const;

  [[nodiscard]] int64_t windows() const { return static_cast<int64_t>(first_.size()) - 1; }
  /// The batches of a window. The two most recently used windows are cached.
  [[nodiscard]] std::shared_ptr<const Batches> window(int64_t number) const;

 private:
  [[nodiscard]] Batches planned(int64_t number, int64_t windows) const;

  ExampleCosts costs_;
  PlanSettings settings_;
  int64_t epoch_;
  std::vector<int64_t> first_{0};  // the first batch of each window, then the number of batches

  struct CachedWindow {
    int64_t number = -1;
    std::shared_ptr<const Batches> batches;
  };
  mutable std::mutex mutex_;
  mutable std::array<CachedWindow, 2> cache_;  // most recently used first; guarded by mutex_
};

}  // namespace plumb
