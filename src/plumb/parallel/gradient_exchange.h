// Gradients summed over the processes of a run, while the backward pass that computes them still runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/parallel/group.h"

namespace plumb {

/// Sums gradients in buckets: groups of neighboring parameters, the last of the model first, since their gradients are
/// complete first (Li et al. 2020, arXiv 2006.15704). A thread of its own exchanges them, over connections of their
/// own.
///
/// A bucket is summed in two exchanges: every rank receives one piece of it from all others, adds them up in the order
/// of the ranks, and sends the sum to all. The order of the additions, and with it every bit of the result, therefore
/// depends neither on the division into buckets nor on when they are exchanged, and is the same in all ranks.
class GradientExchange {
 public:
  struct Options {
    bool overlap = true;  // otherwise, buckets are exchanged after the backward pass
    bool half = false;    // pieces and sums are rounded to bfloat16 on their way; sums are float32
    int64_t bucket_bytes = 1 << 22;
  };

  /// For gradients with respect to these leaves. All ranks must pass the same options.
  GradientExchange(const Group& group, std::vector<Tensor> values, const Options& options);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// The gradient of `loss` (plus `earlier`, unless that is empty), summed over the ranks; zeros for leaves without
  /// influence. In a group of one, without copies. Throws Error if another rank is lost.
  [[nodiscard]] std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<Tensor>& earlier = {});

  /// The seconds that callers have waited for the exchange, and what has been exchanged.
  [[nodiscard]] ExchangeCost cost() const;

 private:
  class Worker;
  struct Bucket;

  void take(size_t parameter, const Tensor& gradient, const std::vector<Tensor>& earlier);
  [[nodiscard]] std::vector<Tensor> backward(const Tensor& loss, const std::vector<Tensor>& earlier);

  Group group_;
  std::vector<Tensor> values_;
  Options options_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // of each parameter
  std::unique_ptr<Worker> worker_;
  size_t handed_over_ = 0;  // buckets of this backward pass
  double waited_ = 0;
};

}  // namespace plumb
