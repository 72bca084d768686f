#include "plumb/task/baseline.h"

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

class LabelBaselines : public ::testing::Test {
 protected:
  LabelBaselines() { write_split(folder_ / "split", std::vector<std::vector<int32_t>>(kSentences.size()), kSentences); }
  Split split() const { return Split::open(folder_ / "split"); }

  test::TemporaryDirectory folder_;
};

/// The label-smoothed loss of a constant prediction q on kCounts: (1 − ε)·nll + ε·mean over the classes of −log q.
double smoothed_loss(const std::vector<double>& q, double smoothing) {
  double nll = 0, mean = 0;
  for (const auto& [label, count] : kCounts) nll -= count / 13 * std::log(q[static_cast<size_t>(label)]);
  for (const double each : q) mean -= std::log(each) / static_cast<double>(q.size());
  return (1 - smoothing) * nll + smoothing * mean;
}

TEST_F(LabelBaselines, PredictsOtherLabels) {
  const LabelBaseline whole = label_baseline(TextDataset(split(), {}), 10);
  Batch batch;
  batch.labels = {2, 9, 3};  // 3 does not occur in the split
  EXPECT_NEAR(whole.nll_on({batch}, 0), -(std::log(5.0 / 13) + std::log(3.0 / 13)) / 2, 1e-12);
  EXPECT_NEAR(whole.nll_on({batch}, 0.1), -(std::log(0.9 * 5 / 13 + 0.01) + std::log(0.9 * 3 / 13 + 0.01)) / 2, 1e-12);
}

TEST_F(LabelBaselines, NllIsTheEntropyOfTheFrequencies) {
  // ln 13 − (5 ln 5 + 3 ln 3 + 2 ln 2)/13.
  const double expected = std::log(13.0) - (5 * std::log(5.0) + 3 * std::log(3.0) + 2 * std::log(2.0)) / 13;
  const LabelBaseline whole = label_baseline(TextDataset(split(), {}));
  EXPECT_EQ(whole.labels(), 13);
  EXPECT_NEAR(whole.nll(), expected, 1e-12);
  EXPECT_NEAR(label_baseline(TextDataset(split(), {}), 50).nll(), expected, 1e-12);  // classes that do not occur
  EXPECT_NEAR(label_baseline(TextDataset(split(), {}, {5, false})).nll(), expected, 1e-12);  // packed: the same labels
  EXPECT_NEAR(label_baseline(StreamDataset(split(), {}, 2, {3})).nll(), expected, 1e-12);
  EXPECT_NEAR(label_baseline(PairDataset(split(), {}, {})).nll(), expected, 1e-12);  // of the target side
  EXPECT_EQ(LabelBaseline(4).nll(), 0);
}

TEST_F(LabelBaselines, EvenlySpacedExamplesStandForALargeSplit) {
  // 2,000 sentences of one word: a third of the first half are 5, all others 6.
  std::vector<std::vector<int32_t>> sentences;
  for (int32_t i = 0; i < 2000; ++i) sentences.push_back({i < 1000 && i % 3 == 0 ? 5 : 6});
  write_split(folder_ / "large", std::vector<std::vector<int32_t>>(sentences.size()), sentences);
  const TextDataset dataset(Split::open(folder_ / "large"), {});
  const LabelBaseline some = label_baseline(dataset, 7, 500);
  EXPECT_NEAR(static_cast<double>(some.labels()), 500, 5);
  EXPECT_NEAR(some.nll(), label_baseline(dataset, 7).nll(), 0.02);
}

TEST_F(LabelBaselines, OfAClassifierIsThatOfItsClasses) {
  const LabelBaseline classes = label_baseline(LabeledDataset(split(), {1, 1, 0, 1, 1}, {}), 2);
  EXPECT_NEAR(classes.nll(), -0.8 * std::log(0.8) - 0.2 * std::log(0.2), 1e-12);
}

TEST_F(LabelBaselines, CountWeightsNotLabels) {
  Batch batch;
  batch.labels = {0, 1, 2};
  batch.weights = {3, 1, 0};
  LabelBaseline baseline(3);
  baseline.add(batch);
  EXPECT_NEAR(baseline.nll(), -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12);
  EXPECT_EQ(baseline.labels(), 2);
}

TEST_F(LabelBaselines, SmoothedLossIsThatOfTheSmoothedFrequencies) {
  // Two classes with p = (3/4, 1/4) of four, ε = 0.2: m = (0.65, 0.25, 0.05, 0.05).
  Batch batch;
  batch.labels = {0, 0, 1, 0};
  LabelBaseline baseline(4);
  baseline.add(batch);
  EXPECT_NEAR(baseline.loss(0.2), -0.65 * std::log(0.65) - 0.25 * std::log(0.25) - 0.1 * std::log(0.05), 1e-12);
  EXPECT_NEAR(baseline.loss(1), std::log(4.0), 1e-12);
}

// No distribution over the labels, whatever it was fitted to, has a smaller loss.
TEST_F(LabelBaselines, AreTheLeastLossesWithoutInput) {
  const LabelBaseline baseline = label_baseline(TextDataset(split(), {}), 12);
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    Random random(1, "distributions");
    double least = 1e9;
    for (int trial = 0; trial < 5000; ++trial) {
      double total = 0;
      std::vector<double> q(12, smoothing / 12 + 1e-12);
      for (const auto& [label, count] : kCounts) q[static_cast<size_t>(label)] += (1 - smoothing) * count / 13;
      for (double& each : q) total += each *= std::exp(0.3 * random.normal());
      for (double& each : q) each /= total;
      least = std::min(least, smoothed_loss(q, smoothing));
    }
    EXPECT_GE(least, baseline.loss(smoothing) - 1e-9) << smoothing;
    EXPECT_LT(least, baseline.loss(smoothing) + 0.02) << smoothing;
  }
}

}  // namespace
}  // namespace plumb
