#include "plumb/divided/gradient_exchange.h"

#include <algorithm>
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

/// Consecutive leaves in the order of a forward pass. From the last unit on, each is closed when it has enough bytes.
ShardLayout layout_of(const std::vector<Tensor>& values, const GradientExchange::Options& options, int64_t ranks) {
  std::vector<int64_t> sizes;
  for (const Tensor& value : values) sizes.push_back(value.numel());
  std::vector<std::vector<size_t>> units;
  size_t bytes = 0;
  for (size_t k = values.size(); k-- > 0;) {
    const size_t i = options.order.empty() ? k : options.order[k];
    if (units.empty() || bytes >= static_cast<size_t>(options.bucket_bytes)) {
      units.emplace_back();
      bytes = 0;
    }
    units.back().push_back(i);
    bytes += values[i].nbytes();
  }
  std::reverse(units.begin(), units.end());
  return {sizes, units, ranks};
}

}  // namespace

struct GradientExchange::Bucket {
  Tensor values;       // with padding: gradients, then their sums; undefined before the first gradient
  Tensor shard;        // with Options::shards: this rank's shard of the sums
  size_t missing = 0;  // gradients
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
    : group_(group), values_(std::move(values)), options_(options) {
  if (group.size() == 1 || values_.empty()) return;
  layout_ = options.shards != nullptr ? *options.shards : layout_of(values_, options, group.size());
  buckets_.resize(layout_.units().size());
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

std::vector<Tensor> GradientExchange::sum(std::vector<Tensor> gradients) {
  if (!worker_) return gradients;
  begin(/*anew=*/true);
  for (size_t i = values_.size(); i-- > 0;) take(i, std::exchange(gradients[i], {}));
  return finish();
}

void GradientExchange::begin(bool anew) {
  for (size_t unit = 0; unit < buckets_.size(); ++unit) {
    Bucket& bucket = buckets_[unit];
    bucket.values = Tensor();
    if (anew) bucket.shard = Tensor();
    bucket.missing = layout_.units()[unit].tensors.size();
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
  for (size_t unit = 0; unit < buckets_.size(); ++unit) {
    const bool shards = options_.shards != nullptr;
    const Tensor all = (shards ? buckets_[unit].shard : buckets_[unit].values).to(values_.front().device());
    for (const size_t i : layout_.units()[unit].tensors) {
      const ShardLayout::Range range = layout_.range(i, group_.rank());
      sums[i] = shards ? all.narrow(0, range.in_shard, range.count)
                       : all.narrow(0, layout_.begin(i), values_[i].numel()).view(values_[i].sizes());
    }
    buckets_[unit].values = Tensor();
  }
  return sums;
}

/// Puts a gradient into its bucket. Buckets are handed to the worker in order, so that all ranks exchange the same one.
void GradientExchange::take(size_t parameter, const Tensor& gradient) {
  const Tensor& value = values_[parameter];
  const size_t unit = layout_.unit_of(parameter);
  Bucket& own = buckets_[unit];
  if (!own.values.defined()) {
    if (options_.shards != nullptr) wait_for_all_but(1);  // the backward pass must not run away from the exchange
    own.values = at::zeros({layout_.units()[unit].shard * group_.size()},
                           values_.front().options().device(at::kCPU).requires_grad(false));
  }
  own.values.narrow(0, layout_.begin(parameter), value.numel()).view(value.sizes()).copy_(gradient.detach());
  --own.missing;
  while (handed_over_ < buckets_.size() && buckets_[buckets_.size() - 1 - handed_over_].missing == 0)
    worker_->add(buckets_[buckets_.size() - 1 - handed_over_++]);
}

}  // namespace plumb
