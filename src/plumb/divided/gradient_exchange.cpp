#include "plumb/divided/gradient_exchange.h"

#include <utility>

#include "plumb/base/job_queue.h"
#include "plumb/base/timing.h"
#include "plumb/divided/exchange_thread.h"
#include "plumb/ops/take_gradients.h"

namespace plumb {
namespace {

/// This rank's shard of the sum of x over the ranks, added in rank order; the number of elements must be a multiple of
/// the number of ranks.
Tensor reduce_scatter(const Group& group, const Tensor& x, bool half) {
  const int64_t ranks = group.size();
  if (x.numel() == 0) return x;  // another stage's parameters
  const Tensor shards = group.all_to_all(half ? x.to(at::kBFloat16) : x).view({ranks, -1}).to(x.scalar_type());
  Tensor sum = shards[0].clone();
  for (int64_t rank = 1; rank < ranks; ++rank) sum += shards[rank];
  return half ? sum.to(at::kBFloat16) : sum;
}

}  // namespace

struct GradientExchange::Bucket {
  std::vector<size_t> parameters;
  int64_t count = 0;  // elements, without padding
  Tensor values;      // with padding: gradients, then their sums; undefined before the first gradient
  Tensor shard;       // with Options::shards: this rank's shard of the sums
  size_t missing = 0;
};

/// Sums buckets in the order in which they are handed over.
class GradientExchange::Worker {
 public:
  Worker(Group group, bool half, bool scatters) : group_(std::move(group)), half_(half), scatters_(scatters) {}

  void add(Bucket& bucket) {
    queue_.add([this, &bucket] { sum(bucket); });
  }

  /// Returns when all but `longest` of the buckets handed over have been summed; rethrows the error of a sum.
  void wait(size_t longest = 0) { queue_.wait(longest); }

  [[nodiscard]] const Group& group() const { return group_; }

 private:
  void sum(Bucket& bucket) const {
    const at::ScalarType type = bucket.values.scalar_type();
    const Tensor shard = reduce_scatter(group_, bucket.values, half_);
    if (!scatters_) {
      bucket.values = at::cat(group_.all_gather(shard)).to(type);
      return;
    }
    bucket.values = Tensor();
    if (bucket.shard.defined()) {
      bucket.shard += shard.to(type);
    } else {
      bucket.shard = shard.to(type);
    }
  }

  Group group_;
  bool half_;
  bool scatters_;
  JobQueue queue_{begin_exchange_thread};
};

GradientExchange::GradientExchange(const Group& group, std::vector<Tensor> values, const Options& options)
    : group_(group), values_(std::move(values)), options_(options), bucket_of_(values_.size()) {
  if (group.size() == 1 || values_.empty()) return;
  if (options.shards != nullptr) {
    const std::vector<ShardLayout::Unit>& units = options.shards->units();
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
      for (const size_t i : unit->tensors) bucket_of_[i] = buckets_.size();
      buckets_.push_back({unit->tensors, unit->count});
    }
  }
  int64_t bytes = options.bucket_bytes;
  for (size_t k = values_.size(); k-- > 0 && options.shards == nullptr;) {
    const size_t i = options.order.empty() ? k : options.order[k];
    if (bytes >= options.bucket_bytes) {
      buckets_.emplace_back();
      bytes = 0;
    }
    bucket_of_[i] = buckets_.size() - 1;
    buckets_.back().parameters.push_back(i);
    buckets_.back().count += values_[i].numel();
    bytes += values_[i].numel() * static_cast<int64_t>(values_[i].element_size());
  }
  worker_ = std::make_unique<Worker>(group.split(0), options.half, options.shards != nullptr);
}

GradientExchange::~GradientExchange() = default;

ExchangeCost GradientExchange::cost() const {
  if (!worker_) return {};
  ExchangeCost cost = worker_->group().cost();
  cost.seconds = waited_;
  return cost;
}

std::vector<Tensor> GradientExchange::gradients_of(const Tensor& loss, std::vector<Tensor> earlier) {
  if (!worker_ && earlier.empty()) return gradients({loss}, values_, {});
  const bool at_once = worker_ && options_.overlap;
  std::vector<Tensor> by_leaf(at_once ? 0 : values_.size());
  if (worker_) begin(earlier.empty());
  if (worker_ && options_.shards != nullptr) earlier.clear();  // the buckets have it
  try {
    take_gradients({loss}, values_, {}, std::move(earlier), [&](size_t i, Tensor gradient) {
      if (at_once) {
        take(i, gradient);
      } else {
        by_leaf[i] = std::move(gradient);
      }
    });
  } catch (const std::exception& error) {
    if (handed_over_ > 0) group_.fail(error.what());  // the others would wait for the other buckets
    throw;
  }
  if (!worker_) return by_leaf;
  for (size_t i = by_leaf.size(); i-- > 0;) take(i, std::exchange(by_leaf[i], {}));
  return finish();
}

std::vector<Tensor> GradientExchange::summed(std::vector<Tensor> gradients) {
  if (!worker_) return gradients;
  begin(/*anew=*/true);
  for (size_t i = values_.size(); i-- > 0;) take(i, std::exchange(gradients[i], {}));
  return finish();
}

void GradientExchange::begin(bool anew) {
  for (Bucket& bucket : buckets_) {
    bucket.values = Tensor();
    if (anew) bucket.shard = Tensor();
    bucket.missing = bucket.parameters.size();
  }
  handed_over_ = 0;
}

void GradientExchange::wait_for_all_but(size_t buckets) {
  const Stopwatch watch;
  worker_->wait(buckets);
  waited_ += watch.seconds();
}

std::vector<Tensor> GradientExchange::finish() {
  wait_for_all_but(0);
  std::vector<Tensor> sums(values_.size());
  for (size_t i = 0; i < sums.size() && options_.shards != nullptr; ++i) {
    const ShardLayout::Range range = options_.shards->range(i, group_.rank());
    sums[i] = buckets_[bucket_of_[i]].shard.narrow(0, range.in_shard, range.count).to(values_.front().device());
  }
  for (Bucket& bucket : buckets_) {
    if (options_.shards != nullptr) break;
    const Tensor all = bucket.values.to(values_.front().device());
    int64_t begin = 0;
    for (const size_t i : bucket.parameters) {
      sums[i] = all.narrow(0, begin, values_[i].numel()).view(values_[i].sizes());
      begin += values_[i].numel();
    }
    bucket.values = Tensor();
  }
  return sums;
}

/// Puts a gradient into its bucket. Buckets are handed to the worker in order, so that all ranks exchange the same one.
void GradientExchange::take(size_t parameter, const Tensor& gradient) {
  Bucket& own = buckets_[bucket_of_[parameter]];
  int64_t begin = 0;
  for (const size_t i : own.parameters) {
    if (i == parameter) break;
    begin += values_[i].numel();
  }
  if (!own.values.defined()) {
    if (options_.shards != nullptr) wait_for_all_but(1);  // the backward pass must not run away from the exchange
    const int64_t ranks = group_.size();
    own.values = at::zeros({(own.count + ranks - 1) / ranks * ranks},
                           values_.front().options().device(at::kCPU).requires_grad(false));
  }
  own.values.narrow(0, begin, values_[parameter].numel()).view(values_[parameter].sizes()).copy_(gradient.detach());
  --own.missing;
  for (size_t i = handed_over_; i < buckets_.size() && buckets_[i].missing == 0; ++i) {
    worker_->add(buckets_[i]);
    ++handed_over_;
  }
}

}  // namespace plumb
