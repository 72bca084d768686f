// Whether a run has learned anything, on curves like those of 6+6 layers on Multi30k with 2,000 pieces: the frequencies
// have 5.74 nats, a uniform guess 7.60.
#include "plumb/trouble/failure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/json_fields.h"
#include "support/contains.h"

namespace plumb {
namespace {

constexpr double kFrequencies = 5.74, kUniform = 7.60;

/// A curve with a point every ten steps.
LossCurve curve_of(std::vector<double> losses) {
  LossCurve curve{.losses = std::move(losses), .frequencies = kFrequencies, .uniform = kUniform};
  for (int64_t i = 0; i < std::ssize(curve.losses); ++i) curve.steps.push_back(i == 0 ? 1 : 10 * i);
  return curve;
}

LearningJudgment judged(std::vector<double> losses) { return judge_learning(curve_of(std::move(losses))); }

TEST(Learning, AHealthyRunHasLearned) {
  const LearningJudgment found =
      judged({7.93, 7.12, 6.48, 6.10, 5.91, 5.80, 5.74, 5.66, 5.52, 5.31, 5.12, 4.95, 4.82, 4.71, 4.66, 4.61, 4.59});
  EXPECT_EQ(found.learning, Learning::learned) << found.text;
  EXPECT_FALSE(found.failed());
  EXPECT_EQ(found.start, 7.93);
  EXPECT_NEAR(found.final, (4.61 + 4.59) / 2, 1e-12);  // below 4.61, the median of the last three
  EXPECT_EQ(found.lowest, found.final);
  EXPECT_EQ(found.text,
            "the training loss ends at 4.60 nats, below the 5.74 of a model that knows only how frequent "
            "each label is");
}

TEST(Learning, ARunThatStaysAtTheFrequenciesHasFailed) {
  const LearningJudgment found =
      judged({7.90, 6.71, 6.05, 5.86, 5.79, 5.77, 5.75, 5.76, 5.74, 5.75, 5.73, 5.75, 5.74, 5.74, 5.73, 5.74});
  EXPECT_EQ(found.learning, Learning::frequencies_only) << found.text;
  EXPECT_TRUE(found.failed());
  EXPECT_EQ(found.text,
            "the training loss ends at 5.74 nats, no better than the 5.74 of a model that knows only how "
            "frequent each label is");
  std::vector<double> lower = {7.90, 6.71, 6.05, 5.80};
  lower.resize(16, 5.73);
  EXPECT_EQ(judged(lower).text,
            "the training loss ends at 5.73 nats, hardly better than the 5.74 of a model that knows only how "
            "frequent each label is");
  // The same with the seven points of a run of 300 steps.
  EXPECT_EQ(judged({8.02, 6.31, 5.87, 5.81, 5.79, 5.78, 5.77}).learning, Learning::frequencies_only);
}

// A point of the log is a mean over 50 steps: with eleven, the median of the last three is the loss of steps 401 to
// 450.
TEST(Learning, ARunThatLeavesThePlateauAtItsEndHasLearned) {
  const std::vector<double> late = {7.93, 6.52, 5.91, 5.78, 5.77, 5.76, 5.76, 5.75, 5.75, 5.72, 5.56};
  const LearningJudgment found = judged(late);
  EXPECT_EQ(found.learning, Learning::learned) << found.text;
  EXPECT_NEAR(found.final, (5.72 + 5.56) / 2, 1e-12);
  // Neither one low point at the end of a flat curve, nor a spike before it, is a fall.
  std::vector<double> flat(60, 5.75);
  for (size_t i = 1; i < flat.size(); i += 2) flat[i] = 5.73;
  flat.front() = 7.93;
  flat.back() = 5.60;
  EXPECT_EQ(judged(flat).learning, Learning::frequencies_only) << judged(flat).text;
  flat.back() = 5.73;
  for (size_t i = 40; i < flat.size(); ++i) {
    std::vector<double> spiked = flat;
    spiked[i] = 9;
    EXPECT_EQ(judged(spiked).learning, Learning::frequencies_only) << i << ": " << judged(spiked).text;
  }
}

// DeepNorm at a rate of 0.016 without warm-up.
TEST(Learning, ARunThatEndsAboveAUniformGuessHasFailed) {
  const LearningJudgment found =
      judged({8.10, 11.42, 9.37, 8.95, 8.20, 8.41, 7.88, 8.33, 7.76, 8.05, 7.95, 7.70, 8.12, 7.84, 7.91, 7.96});
  EXPECT_EQ(found.learning, Learning::worse_than_uniform) << found.text;
  EXPECT_EQ(found.text, "the training loss ends at 7.91 nats, above the 7.60 of a uniform guess");
}

TEST(Learning, OneSpikeChangesNothing) {
  std::vector<double> losses = {7.93, 7.12, 6.48, 6.10, 5.91, 5.72, 5.51, 5.32, 5.14, 4.99, 4.88, 4.80, 4.73};
  for (size_t i = 1; i < losses.size(); ++i) {
    std::vector<double> spiked = losses;
    spiked[i] = 14;
    const LearningJudgment found = judged(spiked);
    EXPECT_EQ(found.learning, Learning::learned) << i << ": " << found.text;
    EXPECT_LT(found.final, 5) << i;
  }
  // With few points, too.
  EXPECT_EQ(judged({8.0, 6.5, 5.6, 5.1, 4.8, 4.6, 9.0}).learning, Learning::learned);
}

// A loss that doubles early, as training stabilizes itself, and then falls.
TEST(Learning, ACatapultHasLearned) {
  const LearningJudgment found =
      judged({7.93, 7.20, 6.90, 13.5, 12.1, 9.80, 8.42, 7.31, 6.54, 6.02, 5.71, 5.40, 5.17, 4.99, 4.87, 4.80});
  EXPECT_EQ(found.learning, Learning::learned) << found.text;
}

TEST(Learning, ARunThatLosesHalfOfWhatItHadLearnedHasFailed) {
  const std::vector<double> falls = {7.93, 6.80, 6.10, 5.76, 5.52, 5.20, 4.95, 4.80, 4.70, 4.66};
  const auto ending_at = [&](double loss) {
    std::vector<double> losses = falls;
    losses.insert(losses.end(), 6, loss);
    return judged(losses);
  };
  // Its lowest median is 4.70, which is 1.04 below the frequencies.
  EXPECT_EQ(ending_at(5.18).learning, Learning::learned) << ending_at(5.18).text;
  EXPECT_EQ(ending_at(5.26).learning, Learning::rose_without_recovery) << ending_at(5.26).text;
  EXPECT_EQ(ending_at(6.50).learning, Learning::rose_without_recovery);
  EXPECT_EQ(ending_at(9.18).learning, Learning::worse_than_uniform);
  EXPECT_EQ(ending_at(6.50).text,
            "the training loss ends at 6.50 nats, after 4.70 at step 80: it rose and has not recovered");
}

// What a pretrained model knew at its start counts as gained only as far as training has lowered it.
TEST(Learning, AFineTunedModelMustNotForget) {
  EXPECT_EQ(judged({3.10, 3.05, 3.02, 3.00, 2.99, 2.98}).learning, Learning::learned);
  EXPECT_EQ(judged({3.10, 3.05, 3.02, 3.00, 3.15, 3.30, 3.42, 3.55, 3.60, 3.61, 3.60}).learning,
            Learning::rose_without_recovery);
}

TEST(Learning, ARunThatStillFallsIsUnfinished) {
  const LearningJudgment low_rate =
      judged({7.93, 7.91, 7.89, 7.87, 7.86, 7.84, 7.82, 7.80, 7.79, 7.77, 7.75, 7.73, 7.72});
  EXPECT_EQ(low_rate.learning, Learning::unfinished) << low_rate.text;
  EXPECT_FALSE(low_rate.failed());
  EXPECT_CONTAINS(low_rate.text, "still falling");
  const LearningJudgment cut_short = judged({7.90, 7.21, 6.80, 6.51, 6.35, 6.24, 6.11, 6.02});
  EXPECT_EQ(cut_short.learning, Learning::unfinished) << cut_short.text;
}

TEST(Learning, ShortRunsAreNotCalledFailures) {
  LossCurve curve = curve_of({7.9, 8.5, 9.1, 9.3, 9.2});
  EXPECT_TRUE(judge_learning(curve).failed());
  curve.steps = {1, 4, 8, 12, 19};
  const LearningJudgment found = judge_learning(curve);
  EXPECT_EQ(found.learning, Learning::unfinished);
  EXPECT_CONTAINS(found.text, "too short");
  EXPECT_EQ(judged({7.9, 8.5, 9.1}).learning, Learning::unfinished);  // three points
  EXPECT_EQ(judged({7.9, 4.0}).learning, Learning::learned);
}

// A balanced choice of two: ln 2 = 0.693 for the frequencies and a uniform guess; the margin is 5% of it.
TEST(Learning, ClassifiersHaveASmallerMargin) {
  const auto classifier = [](double last) {
    LossCurve curve = curve_of({0.74, 0.71, 0.70, 0.69, last, last, last, last});
    curve.frequencies = curve.uniform = std::log(2.0);
    return judge_learning(curve).learning;
  };
  EXPECT_EQ(classifier(0.64), Learning::learned);
  EXPECT_EQ(classifier(0.67), Learning::frequencies_only);
  EXPECT_EQ(classifier(0.69), Learning::frequencies_only);
  EXPECT_EQ(classifier(0.75), Learning::worse_than_uniform);
}

TEST(Learning, DivergenceIsFailureWhateverTheCurve) {
  std::vector<double> losses = {7.9, 7.0, 6.1, 5.5, 5.0, 4.8, 4.6, NAN};
  EXPECT_EQ(judged(losses).learning, Learning::diverged);
  losses.push_back(4.5);  // after skipped steps
  EXPECT_EQ(judged(losses).learning, Learning::learned);
  LossCurve curve = curve_of(losses);
  curve.diverged = true;
  EXPECT_EQ(judge_learning(curve).learning, Learning::diverged);
  EXPECT_EQ(judged({INFINITY}).learning, Learning::diverged);
  EXPECT_TRUE(judged({}).failed());
}

TEST(Learning, JudgmentsSurviveTheirJson) {
  LearningJudgment written = judged({7.9, 7.9, 7.9, 8.0, 8.1});
  const Json json = described_json(written);
  EXPECT_EQ(json["class"], "worse-than-uniform");
  EXPECT_EQ(json["failed"], true);
  auto read = from_described_json<LearningJudgment>(Json::parse(json.dump()));
  EXPECT_EQ(described_json(read), json);
}

}  // namespace
}  // namespace plumb
