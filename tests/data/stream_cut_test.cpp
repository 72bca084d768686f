#include "plumb/data/stream_cut.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/data/batch_plan.h"

namespace plumb {
namespace {

using Segments = std::vector<std::vector<int64_t>>;

TEST(StreamCut, EveryColumnIsReadOnceInOrder) {
  EXPECT_EQ(cut_stream(7, {3}), (Segments{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(cut_stream(6, {3}), (Segments{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(cut_stream(2, {3}), (Segments{{0, 1}}));
  EXPECT_EQ(cut_stream(0, {3}), Segments());
  EXPECT_THROW(cut_stream(7, {0}), Error);
}

/// P(max(5, ⌊x⌋) = k), x normal with standard deviation 5 around `length` with probability 0.95, else around length/2.
double probability(int64_t length, int64_t k) {
  const auto below = [](double x, double mean) { return 0.5 * std::erfc((mean - x) / (5 * std::sqrt(2.0))); };
  double sum = 0;
  const auto whole = static_cast<double>(length);
  for (const auto& [share, mean] : {std::pair{0.95, whole}, std::pair{0.05, whole / 2}}) {
    const double least = k == 5 ? 0 : below(static_cast<double>(k), mean);
    sum += share * (below(static_cast<double>(k) + 1, mean) - least);
  }
  return sum;
}

TEST(StreamCut, VariedLengthsHaveTheDistributionOfThePaper) {
  constexpr int64_t kDraws = 40000;
  for (const int64_t length : {70, 21, 8}) {
    std::map<int64_t, int64_t> counts;
    for (int64_t number = 0; number < kDraws; ++number) ++counts[segment_length({length, true}, 5, 2, number)];
    EXPECT_GE(counts.begin()->first, 5);
    double total = 0;
    for (int64_t k = 5; k < length + 40; ++k) {
      const double p = probability(length, k);
      const double expected = p * kDraws, deviation = std::sqrt(kDraws * p * (1 - p));
      const auto found = static_cast<double>(counts[k]);
      EXPECT_NEAR(found, expected, 5 * deviation + 1) << k << " of " << length;
      total += found;
    }
    EXPECT_EQ(total, kDraws);
  }
}

TEST(StreamCut, VariedLengthsAreAFunctionOfSeedEpochAndNumber) {
  const StreamCut cut{70, true};
  const auto lengths = [&](uint64_t seed, int64_t epoch) {
    std::vector<int64_t> all;
    for (int64_t number = 0; number < 20; ++number) all.push_back(segment_length(cut, seed, epoch, number));
    return all;
  };
  EXPECT_EQ(lengths(1, 0), lengths(1, 0));
  EXPECT_NE(lengths(1, 0), lengths(2, 0));
  EXPECT_NE(lengths(1, 0), lengths(1, 1));
  const Segments segments = cut_stream(5000, cut, 1, 3);
  const std::vector<int64_t> expected = lengths(1, 3);
  int64_t next = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i < expected.size()) {
      EXPECT_EQ(std::ssize(segments[i]), expected[i]);
    }
    for (const int64_t column : segments[i]) EXPECT_EQ(column, next++);
  }
  EXPECT_EQ(next, 5000);
  const std::vector<ExampleCost> costs(5000, {0, 80});
  const BatchPlan plan(costs, {.tokens = 10, .seed = 1, .stream = cut}, 3);
  EXPECT_EQ(plan.batches(0, plan.size()), segments);
}

// Columns are not sorted by length, limited in tokens, or planned in windows.
TEST(StreamCut, APlanOfAStreamIsItsSegments) {
  const std::vector<ExampleCost> costs(25, {0, 80});
  for (const int64_t epoch : {0, 1}) {
    const BatchPlan plan(costs, {.tokens = 10, .seed = 3, .largest = 4, .window = 2, .stream = StreamCut{10}}, epoch);
    EXPECT_EQ(plan.windows(), 1);
    EXPECT_EQ(plan.size(), 3);
    EXPECT_EQ(plan.batches(0, 3), cut_stream(25, {10}));
    EXPECT_EQ(plan.batches(2, 3), (Segments{{20, 21, 22, 23, 24}}));
  }
}

}  // namespace
}  // namespace plumb
