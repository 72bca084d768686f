// Sums gradients over the processes of a run, overlapped with the backward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plumb/divided/shard_layout.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Sums gradients in buckets, the units of a ShardLayout: the last one first, since the gradients of what a forward
/// pass uses last are complete first (Li et al. 2020, arXiv 2006.15704). A separate thread exchanges them over separate
/// connections.
///
/// A bucket is summed in two exchanges: every rank receives one shard of it from all others, adds them up in rank
/// order (reduce-scatter), and sends the sum to all (all-gather). The order of the additions, and with it every bit of
/// the result, therefore depends neither on the division into buckets nor on when they are exchanged, and is the same
/// on all ranks.
class GradientExchange {
 public:
  struct Options {
    bool overlap = true;                  // otherwise, buckets are exchanged after the backward pass
    bool half = false;                    // shards and sums are sent as bfloat16, but added in the gradients' type
    int64_t bucket_bytes = 1 << 22;       // a bucket is closed when it has at least as many; without `shards`
    std::vector<size_t> order{};          // of the leaves in a forward pass; empty: as they are given
    const ShardLayout* shards = nullptr;  // of the leaves; every rank then keeps its shards of the sums only
  };

  /// For gradients with respect to these leaves. All ranks must pass the same options.
  GradientExchange(const Group& group, std::vector<Tensor> values, const Options& options);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// The gradient of `loss` (plus `earlier`, unless that is empty), summed over the ranks; zeros for leaves without
  /// influence. In a group of one, without copies. With Options::shards, this rank's shards of the sums, each
  /// one-dimensional (ShardLayout::range); `earlier` has to be the result of the last call, and becomes the new one.
  /// Throws Error if another rank is lost.
  [[nodiscard]] std::vector<Tensor> gradients_of(const Tensor& loss, std::vector<Tensor> earlier = {});

  /// Gradients that have been computed, one per leaf, summed over the ranks. In a group of one, the gradients
  /// themselves.
  [[nodiscard]] std::vector<Tensor> sum(std::vector<Tensor> gradients);

  /// The seconds that callers have waited for exchanges, and what has been exchanged.
  [[nodiscard]] ExchangeCost cost() const;

 private:
  class Worker;
  struct Bucket;

  void begin(bool anew);
  void wait_for_all_but(size_t buckets);
  /// The sums, once all gradients have been taken.
  [[nodiscard]] std::vector<Tensor> finish();
  void take(size_t parameter, const Tensor& gradient);

  Group group_;
  std::vector<Tensor> values_;
  Options options_;
  ShardLayout layout_;           // of the leaves
  std::vector<Bucket> buckets_;  // [unit]
  std::unique_ptr<Worker> worker_;
  size_t handed_over_ = 0;  // buckets of this backward pass
  double waited_ = 0;
};

}  // namespace plumb
