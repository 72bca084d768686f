#include "plumb/metrics/classification.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

const Confusion kThree{3, {50, 3, 2, 4, 30, 6, 1, 9, 45}};

TEST(ClassificationMetrics, OfThreeLabels) {
  EXPECT_EQ(kThree.total(), 150);
  EXPECT_NEAR(accuracy_of(kThree), 125.0 / 150, 1e-15);
  // From precision and recall of each label.
  EXPECT_NEAR(macro_f1_of(kThree), 0.824710519832471, 1e-14);
  // cov(X, Y)/√(cov(X, X)·cov(Y, Y)) of the labels and predictions as indicator vectors.
  EXPECT_NEAR(matthews_of(kThree), 0.7481861387248683, 1e-14);
}

TEST(ClassificationMetrics, OfTwoLabelsMatthewsIsPhi) {
  const double tp = 90, fn = 5, fp = 4, tn = 1;
  EXPECT_NEAR(matthews_of({2, {tn, fp, fn, tp}}), 0.13524203070138519, 1e-14);
  EXPECT_NEAR(matthews_of({2, {0, 5, 5, 0}}), -1, 1e-14);
  EXPECT_NEAR(matthews_of({2, {5, 0, 0, 5}}), 1, 1e-14);
}

TEST(ClassificationMetrics, OfOneLabelOrPredictionOrOfNothing) {
  EXPECT_EQ(matthews_of({2, {0, 7, 0, 3}}), 0);  // one prediction
  EXPECT_EQ(matthews_of({2, {0, 0, 4, 6}}), 0);  // one label
  EXPECT_NEAR(macro_f1_of({2, {0, 7, 0, 3}}), 0.3 / 1.3, 1e-15);
  const Confusion none{2, {0, 0, 0, 0}};
  EXPECT_EQ(accuracy_of(none), 0);
  EXPECT_EQ(macro_f1_of(none), 0);
  EXPECT_EQ(matthews_of(none), 0);
  EXPECT_THROW((void)bootstrap_classification(none), Error);
}

// The fractions q for which |hits/n − q| = z·√(q·(1 − q)/n), by bisection.
TEST(WilsonInterval, SolvesItsEquation) {
  const auto expect = [](double hits, double n, double low, double high) {
    const SampleInterval found = wilson_interval(hits, n);
    EXPECT_EQ(found.mean, hits / n);
    EXPECT_NEAR(found.low, low, 1e-12);
    EXPECT_NEAR(found.high, high, 1e-12);
  };
  expect(125, 150, 0.765534135830992, 0.884485701256957);
  expect(8, 10, 0.490162471536642, 0.943317848545625);
  expect(0, 20, 0, 1 - 0.838874841947181);
  expect(20, 20, 0.838874841947181, 1);
}

TEST(ClassificationBootstrap, CoversWhatOtherExamplesWouldGive) {
  const ClassificationIntervals found = bootstrap_classification(kThree);
  EXPECT_LT(found.matthews.low, matthews_of(kThree));
  EXPECT_GT(found.matthews.high, matthews_of(kThree));
  EXPECT_LT(found.f1.low, macro_f1_of(kThree));
  EXPECT_GT(found.f1.high, macro_f1_of(kThree));
  EXPECT_EQ(bootstrap_classification(kThree).f1.low, found.f1.low);
  // Four times the examples: half the width.
  Confusion larger = kThree;
  for (double& count : larger.counts) count *= 4;
  const ClassificationIntervals narrow = bootstrap_classification(larger);
  EXPECT_NEAR(narrow.matthews.half_width() / found.matthews.half_width(), 0.5, 0.08);
  EXPECT_NEAR(narrow.f1.half_width() / found.f1.half_width(), 0.5, 0.08);
  // For two balanced labels with the same errors, Matthews' correlation is nearly 2a − 1, where a is the accuracy, so
  // its interval is about twice that of a.
  const Confusion balanced{2, {400, 100, 100, 400}};
  EXPECT_NEAR(bootstrap_classification(balanced).matthews.half_width(), 2 * 1.96 * std::sqrt(0.8 * 0.2 / 1000), 0.006);
}

// Almost all samples lack some of ten labels that are present once; that says nothing about the others.
TEST(ClassificationBootstrap, LabelsThatAreNotDrawnDoNotCount) {
  Confusion perfect{10, std::vector<double>(100, 0)};
  for (size_t label = 0; label < 10; ++label) perfect.counts[11 * label] = 1;
  EXPECT_EQ(macro_f1_of(perfect), 1);
  EXPECT_EQ(bootstrap_classification(perfect).f1.low, 1);
  // As scikit-learn's f1_score(average="macro"): the third label is neither present nor predicted.
  EXPECT_NEAR(macro_f1_of({3, {4, 1, 0, 2, 3, 0, 0, 0, 0}}), (8.0 / 11 + 6.0 / 9) / 2, 1e-15);
}

TEST(ClassificationBootstrap, OfAPerfectClassifierHasNoWidth) {
  const ClassificationIntervals found = bootstrap_classification({2, {30, 0, 0, 40}});
  EXPECT_EQ(found.matthews.low, 1);
  EXPECT_EQ(found.matthews.high, 1);
  EXPECT_EQ(found.f1.low, 1);
}

}  // namespace
}  // namespace plumb
