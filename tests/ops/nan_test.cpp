// NaN propagates through kernels and through references.
#include <cstdlib>

#include "ops/nan_cases.h"
#include "plumb/ops/top_scores.h"
#include "plumb/ops/path.h"
#include "support/process.h"

namespace plumb {
namespace {

namespace cases = testing::nan_cases;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NaN, IsPassedOnByLinearLayers) { cases::expect_all(cases::linear_layers()); }
TEST(NaN, IsPassedOnByAttention) { cases::expect_all(cases::attentions()); }
TEST(NaN, IsPassedOnByFastWeights) { cases::expect_all(cases::fast_weights()); }
TEST(NaN, IsPassedOnByEverythingElse) { cases::expect_all(cases::others()); }

TEST(NaN, IsARowsOnlyScore) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const int64_t at : {3, 4, 70, 97, 98}) {
      const Tensor logits = testing::random_tensor({3, 99}, 1).to(type);
      logits[1][at] = kNaN;
      if (at < 98) logits[1][98] = kNaN;
      for (const int64_t k : {1, 5}) {
        const ops::TopScores top = ops::top_scores(logits, k, 3, true);
        EXPECT_EQ(top.ids[static_cast<size_t>(k)], at);
        EXPECT_TRUE(std::isnan(top.scores[static_cast<size_t>(k)]));
        for (int64_t i = 1; i < k; ++i) EXPECT_EQ(top.ids[static_cast<size_t>(k + i)], -1);
        EXPECT_TRUE(std::isnan(top.log_partition[1]));
        EXPECT_TRUE(std::isfinite(top.log_partition[0]) && std::isfinite(top.log_partition[2]));
      }
    }
  }
}

TEST(NaN, OutsideOfTheIdsThatAreAskedForIsInTheSum) {
  for (const double value : {kNaN, kInfinity}) {
    Tensor logits = testing::random_tensor({1, 99}, 1);
    logits[0][1] = value;
    const ops::TopScores top = ops::top_scores(logits, 1, 3, true);
    EXPECT_TRUE(std::isfinite(top.scores[0]));
    EXPECT_FALSE(std::isfinite(top.log_partition[0]));
  }
}

TEST(NaN, IsNoSumOfScoresThatAreAllMinusInfinity) {
  const ops::TopScores top = ops::top_scores(at::full({1, 99}, -kInfinity), 2, 3, true);
  EXPECT_EQ(top.ids, (std::vector<int32_t>{-1, -1}));
  EXPECT_EQ(top.log_partition[0], -kInfinity);
}

/// Runs the same cases with the references, in a process without kernels.
TEST(NaN, IsPassedOnByReferences) {
  if (!ops::kernels_serve(at::kCPU)) GTEST_SKIP() << "the other tests cover the references here";
  ::setenv("PLUMB_KERNELS", "off", 1);
  test::Process process("/proc/self/exe", {"--gtest_filter=NaN.*-*FastWeights"});
  ::unsetenv("PLUMB_KERNELS");
  const test::Finished finished = process.wait();
  EXPECT_EQ(finished.status, 0) << finished.output;
}

}  // namespace
}  // namespace plumb
