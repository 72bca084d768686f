#include "plumb/task/label_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plumb/base/random.h"
#include "plumb/task/datasets.h"
#include "plumb/task/stream_dataset.h"
#include "support/paths.h"

namespace plumb {
namespace {

// Five sentences of 8 tokens in all, each with EOS (2): 2 five times, 9 three times, 5 twice, and 6, 7 and 8 once.
const std::vector<std::vector<int32_t>> kSentences = {{5}, {5, 6}, {7}, {8}, {9, 9, 9}};
const std::map<int64_t, double> kCounts = {{2, 5}, {9, 3}, {5, 2}, {6, 1}, {7, 1}, {8, 1}};

TEST(LabelEntropy, OfTheFrequencies) {
  const test::TemporaryDirectory folder;
  write_split(folder / "split", std::vector<std::vector<int32_t>>(kSentences.size()), kSentences);
  const ParallelSplit split = ParallelSplit::open(folder / "split");
  // ln 13 − (5 ln 5 + 3 ln 3 + 2 ln 2)/13.
  const double expected = std::log(13.0) - (5 * std::log(5.0) + 3 * std::log(3.0) + 2 * std::log(2.0)) / 13;
  EXPECT_NEAR(label_entropy(TextDataset(split, {})), expected, 1e-12);
  EXPECT_NEAR(label_entropy(TextDataset(split, {}, {5, false})), expected, 1e-12);  // packed: the same labels
  EXPECT_NEAR(label_entropy(StreamDataset(split, {}, 2, {3})), expected, 1e-12);
}

// No distribution over the labels, whatever it was fitted to, has a smaller loss.
TEST(LabelEntropy, IsTheLeastLossWithoutInput) {
  const test::TemporaryDirectory folder;
  write_split(folder / "split", std::vector<std::vector<int32_t>>(kSentences.size()), kSentences);
  const double entropy = label_entropy(TextDataset(ParallelSplit::open(folder / "split"), {}));
  Random random(1, "distributions");
  double least = 1e9;
  for (int trial = 0; trial < 5000; ++trial) {
    double total = 0, loss = 0;
    std::map<int64_t, double> weights;
    for (const auto& [label, count] : kCounts)
      total += weights[label] = count * std::exp(0.3 * random.normal());
    for (const auto& [label, count] : kCounts) loss -= count / 13 * std::log(weights[label] / total);
    least = std::min(least, loss);
  }
  EXPECT_GE(least, entropy - 1e-12);
  EXPECT_LT(least, entropy + 0.01);
}

}  // namespace
}  // namespace plumb
