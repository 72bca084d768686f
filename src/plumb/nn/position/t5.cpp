// T5's relative bias, Raffel et al. 2019, arXiv 1910.10683: a trained number for each head and bucket of distances is
// added to the scores. Unlike in T5, the scores are divided by √size, as all of Plumb's are. The layers of a side share
// the table PREFIX.relative_bias (32, heads). With distance = query − key and n buckets, each distance below n/2 has
// its own bucket; beyond that, buckets widen logarithmically up to distance 128, and all larger distances share the
// last:
//   n/2 + ⌊ln(distance/(n/2))/ln(128/(n/2))·(n − n/2)⌋.
// If attention is causal, n = 32 and later keys are in bucket 0; otherwise n = 16 for each direction, with keys after
// the query in the second half.
#include <algorithm>
#include <cmath>

#include "plumb/nn/position/position.h"
#include "plumb/ops/index.h"

namespace plumb {
namespace {

constexpr int64_t kBuckets = 32;
constexpr double kFarthest = 128;

int64_t bucket_of(int64_t query, int64_t key, bool causal) {
  const int64_t buckets = causal ? kBuckets : kBuckets / 2;
  const int64_t distance = causal ? std::max<int64_t>(query - key, 0) : std::abs(query - key);
  const int64_t half = !causal && key > query ? buckets : 0;
  const int64_t exact = buckets / 2;
  if (distance < exact) return half + distance;
  if (static_cast<double>(distance) >= kFarthest) return half + buckets - 1;
  const double far = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                     std::log(kFarthest / static_cast<double>(exact));
  return half + std::min(exact + static_cast<int64_t>(far * static_cast<double>(buckets - exact)), buckets - 1);
}

class BucketBias final : public RelativePositions {
 public:
  BucketBias(Tensor table, bool causal) : table_(std::move(table)), causal_(causal) {}

  bool biased() const override { return true; }
  [[nodiscard]] bool divisible() const override { return true; }
  void divide(LayerDivision& division) override { division.divide(table_, 1); }
  Tensor bias(const Tensor& query, const Tensor& key, int64_t begin) const override {
    const int64_t queries = query.size(1);
    const int64_t keys = key.size(1);
    std::vector<int64_t> buckets;
    buckets.reserve(static_cast<size_t>(queries * keys));
    for (int64_t i = begin; i < begin + queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) buckets.push_back(bucket_of(i, j, causal_));
    }
    const Tensor index = ops::index_beside(query, buckets);
    return table_.index_select(0, index).t().reshape({table_.size(1), queries, keys});
  }

 private:
  Tensor table_;  // (buckets, heads)
  bool causal_;
};

const bool kT5Registered = positions().add(
    "t5",
    "score + a trained number for each head and bucket of i − j; 32 buckets, widening up to distance "
    "128; one table per side",
    "Raffel et al. 2019, arXiv 1910.10683",
    [](Parameters& parameters, const std::string& prefix, const PositionShape& shape, const Options&) {
      return std::make_unique<Positions>(std::make_shared<BucketBias>(
          parameters.add(prefix + ".relative_bias", {kBuckets, shape.heads}, Role::position), shape.causal));
    });

}  // namespace
}  // namespace plumb
