// The batches of an epoch, planned without holding or sorting a large corpus.
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

/// What a plan depends on besides the examples and the epoch.
struct PlanSettings {
  int64_t tokens = 0;  // at most, in a batch; of no importance to a stream
  uint64_t seed = 0;
  int64_t largest = int64_t{1} << 22;              // examples up to which an epoch is planned as one
  int64_t window = int64_t{1} << 20;               // examples planned together if there are more
  std::optional<CorpusMixture> mixture = {};       // what an epoch consists of; absent: every example once
  std::optional<StreamCut> stream = std::nullopt;  // if the examples are the columns of a stream: how it is cut
};

/// One epoch of training: every example once, or the draws of a mixture, of which one example may have several. Up to
/// `largest` examples the batches are those of `plan_batches`. More examples are put in a random order
/// (base/permutation.h), which is cut into windows, and each window is planned by itself when it is needed. The batches
/// of a stream are its segments, in order. Every batch is a function of the arguments and its number only. Safe to use
/// from several threads.
class BatchPlan {
 public:
  using Batches = std::vector<std::vector<int64_t>>;

  /// Goes through all windows once to count their batches. Throws Error if a single example is larger than a batch, or
  /// if the mixture is of another number of examples.
  BatchPlan(const ExampleCosts& costs, const PlanSettings& settings, int64_t epoch);

  [[nodiscard]] int64_t epoch() const { return epoch_; }

  /// The number of batches.
  [[nodiscard]] int64_t size() const { return first_.back(); }

  /// Batches `first`, `first` + 1, … of the epoch: `count` of them, or as many as are left.
  [[nodiscard]] Batches batches(int64_t first, int64_t count) const;

  [[nodiscard]] int64_t windows() const { return static_cast<int64_t>(first_.size()) - 1; }
  /// The batches of a window. The two used last are kept.
  [[nodiscard]] std::shared_ptr<const Batches> window(int64_t number) const;

 private:
  [[nodiscard]] Batches planned(int64_t number, int64_t windows) const;

  ExampleCosts costs_;
  PlanSettings settings_;
  int64_t epoch_;
  std::vector<int64_t> first_{0};  // the first batch of each window, and the number of all batches

  struct Kept {
    int64_t number = -1;
    std::shared_ptr<const Batches> batches;
  };
  mutable std::mutex mutex_;
  mutable std::array<Kept, 2> kept_;  // the one used last first; under the mutex
};

}  // namespace plumb
