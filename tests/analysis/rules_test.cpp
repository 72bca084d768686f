// Rules on made-up measurements: true, false and undecidable claims, and diverged runs.
#include "plumb/analysis/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "plumb/analysis/sweep.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Judge, IntervalInsideOutsideAndAcross) {
  // Mean 1, s = 0.1, n = 3: half-width 4.3026527 · 0.1/√3 = 0.24841.
  const std::vector<double> values = {0.9, 1.0, 1.1};
  const Judgment above = judge(values, Region::above(0.75));
  EXPECT_EQ(above.outcome, Outcome::supported);
  EXPECT_NEAR(above.effect.low, 1 - 0.24841, 1e-5);
  EXPECT_NEAR(above.effect.high, 1 + 0.24841, 1e-5);
  EXPECT_EQ(above.effect.count, 3);
  EXPECT_EQ(judge(values, Region::above(0.76)).outcome, Outcome::undecided);
  EXPECT_EQ(judge(values, Region::above(1.24)).outcome, Outcome::undecided);
  EXPECT_EQ(judge(values, Region::above(1.25)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge(values, Region::below(1.25)).outcome, Outcome::supported);
  EXPECT_EQ(judge(values, Region::below(0.75)).outcome, Outcome::contradicted);
}

TEST(Judge, EqualityNeedsTheIntervalWithinTheMargin) {
  EXPECT_EQ(judge({0.9, 1.0, 1.1}, Region::around(1, 0.25)).outcome, Outcome::supported);
  EXPECT_EQ(judge({0.9, 1.0, 1.1}, Region::around(1, 0.24)).outcome, Outcome::undecided);  // not "no difference"
  EXPECT_EQ(judge({0.9, 1.0, 1.1}, Region::around(2, 0.5)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge({-5, 1.0, 7}, Region::around(1, 0.25)).outcome, Outcome::undecided);  // wide: no help
}

TEST(Judge, AWiderIntervalNeverHelps) {
  for (const Region& region : {Region::above(0.5), Region::below(1.5), Region::around(1, 0.3)}) {
    bool still = true;
    for (double spread = 0; spread < 3; spread += 0.05) {
      const bool now = judge({1 - spread, 1.0, 1 + spread}, region).outcome == Outcome::supported;
      EXPECT_TRUE(still || !now) << spread;
      still = now;
    }
    EXPECT_FALSE(still);
  }
}

TEST(Judge, RatiosByTheirLogarithms) {
  // ln 2 ± 4.3026527 · s/√3 with s = ln 1.1: e^± 0.23676 around 2.
  const Judgment ratio = judge({2 / 1.1, 2, 2 * 1.1}, Region::above(1.5), Scale::logarithmic);
  EXPECT_NEAR(ratio.effect.mean, 2, 1e-12);
  EXPECT_NEAR(ratio.effect.low, 2 * std::exp(-0.236763), 1e-5);
  EXPECT_NEAR(ratio.effect.high, 2 * std::exp(0.236763), 1e-5);
  EXPECT_EQ(ratio.outcome, Outcome::supported);
  EXPECT_EQ(judge({1, 0, 2}, Region::above(0.1), Scale::logarithmic).outcome, Outcome::undecided);
}

TEST(Judge, OneSeedAndMissingNumbersDecideNothing) {
  EXPECT_EQ(judge({5}, Region::above(0)).outcome, Outcome::undecided);
  EXPECT_EQ(judge({5}, Region::above(0)).effect.mean, 5);
  const Judgment missing = judge({1, 1.01, 0.99, kNaN}, Region::above(0));
  EXPECT_EQ(missing.outcome, Outcome::undecided);
  EXPECT_EQ(missing.reason, "1 of 4 seeds gave no number");
  EXPECT_EQ(judge({kInfinity, kInfinity}, Region::above(0)).outcome, Outcome::undecided);
  EXPECT_EQ(judge({}, Region::above(0)).effect.count, 0);
}

TEST(JudgeEach, EveryConditionHasToHold) {
  const std::vector<double> one = {0.9, 1.0, 1.1};    // 1 ± 0.248
  const std::vector<double> three = {2.9, 3.0, 3.1};  // 3 ± 0.248
  const Judgment both = judge_each({{one, Region::around(1, 0.3)}, {three, Region::around(3, 0.26)}});
  EXPECT_EQ(both.outcome, Outcome::supported);
  EXPECT_NEAR(both.effect.mean, 3, 1e-12);  // it has the least room
  EXPECT_EQ(judge_each({{one, Region::around(1, 0.3)}, {three, Region::around(3, 0.2)}}).outcome, Outcome::undecided);
  // With two conditions, contradiction requires 97.5%: t = 6.2053 for two degrees of freedom, 3 ± 0.3583.
  EXPECT_EQ(judge_each({{one, Region::around(1, 0.3)}, {three, Region::above(3.3)}}).outcome, Outcome::undecided);
  EXPECT_EQ(judge(three, Region::above(3.3)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_each({{one, Region::around(1, 0.3)}, {three, Region::above(3.4)}}).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_each({{one, Region::around(1, 0.3)}, {{kNaN}, {}}}).outcome, Outcome::undecided);
  EXPECT_THROW(judge_each({}), Error);
}

TEST(JudgeDifference, FinishedRunsByTheirInterval) {
  EXPECT_EQ(judge_difference({3.0, 3.1, 3.2}, {2.0, 2.1, 2.21}, Region::above(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_difference({2.0, 2.1, 2.2}, {3.0, 3.1, 3.21}, Region::above(0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference({2.0, 2.5, 2.2}, {2.3, 2.1, 2.2}, Region::above(0.1)).outcome, Outcome::undecided);
  EXPECT_THROW(judge_difference({1}, {1, 2}, {}), Error);
}

TEST(JudgeDifference, EveryRunDivergedIsNoFinding) {
  const std::vector<double> all = {kInfinity, kInfinity, kInfinity};
  for (const Region& region : {Region::above(0.1), Region::below(0.1), Region::around(0, 0.1)}) {
    const Judgment judgment = judge_difference(all, all, region);
    EXPECT_EQ(judgment.outcome, Outcome::not_testable);
    EXPECT_EQ(judgment.reason, "every run diverged");
  }
}

TEST(JudgeDifference, DivergenceIsALargerLoss) {
  const std::vector<double> all = {kInfinity, kInfinity, kInfinity};
  const std::vector<double> none = {2.0, 2.1, 2.2};
  EXPECT_EQ(judge_difference(all, none, Region::above(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_difference(all, none, Region::below(0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference(all, none, Region::around(0, 0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference(none, all, Region::above(0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference(none, all, Region::below(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_difference(none, all, Region::around(0, 0.1)).outcome, Outcome::contradicted);
}

TEST(JudgeDifference, OneDivergedRunOfThreeDecidesNothing) {
  const Judgment one = judge_difference({kInfinity, 2.1, 2.2}, {2.0, 2.1, 2.2}, Region::below(0.1));
  EXPECT_EQ(one.outcome, Outcome::undecided);  // not "as good", though the others are equal
  EXPECT_EQ(one.reason, "1 and 0 of 3 runs diverged");
  EXPECT_EQ(one.effect.count, 2);
  EXPECT_EQ(judge_difference({kInfinity}, {2.0}, Region::above(0.1)).outcome, Outcome::undecided);  // one seed
}

TEST(Divergence, FishersExactTest) {
  EXPECT_NEAR(divergence_p_value(3, 3, 0, 3), 1.0 / 20, 1e-12);    // 1/(6 choose 3)
  EXPECT_NEAR(divergence_p_value(5, 5, 0, 5), 1.0 / 252, 1e-12);   // 1/(10 choose 5)
  EXPECT_NEAR(divergence_p_value(2, 3, 0, 3), 3.0 / 15, 1e-12);    // (3 choose 2)/(6 choose 2)
  EXPECT_NEAR(divergence_p_value(4, 5, 1, 5), 26.0 / 252, 1e-12);  // 25 + 1 of (10 choose 5)
  EXPECT_NEAR(divergence_p_value(0, 3, 3, 3), 1, 1e-12);
}

TEST(JudgeGrowth, ByTheExactDistributionOfKendallsS) {
  // Four conditions in order for one seed: p = 1/24. For two seeds: 1/576.
  const std::vector<double> up = {1, 2, 3, 4};
  EXPECT_EQ(judge_growth({up}).outcome, Outcome::undecided);
  EXPECT_EQ(judge_growth({up, up}).outcome, Outcome::supported);
  EXPECT_EQ(judge_growth({up, up}).reason, "p = 0.0017");
  EXPECT_EQ(judge_growth({up, up}).effect.mean, 1);
  EXPECT_EQ(judge_growth({{4, 3, 2, 1}, {4, 3, 2, 1}}).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_growth({{1, 2, 3, 4}, {4, 3, 2, 1}}).outcome, Outcome::undecided);
  // Two seeds, each with one discordant pair of six: P(S₁ + S₂ has at most 2) = (1 + 6 + 9 + 10)/576 — 1 order without
  // a discordant pair, 3 with one and 5 with two: 1·1; 2·3; 3·3 + 2·5.
  EXPECT_EQ(judge_growth({{2, 1, 3, 4}, {1, 2, 4, 3}}).reason, "p = 0.045");
  EXPECT_EQ(judge_growth({{2, 2, 2, 2}, {2, 2, 2, 2}}).outcome, Outcome::undecided);  // ties neither grow nor fall
  EXPECT_EQ(judge_growth({{1, 2, kInfinity, 4}, up}).outcome, Outcome::undecided);
  EXPECT_THROW(judge_growth({up, {1, 2}}), Error);
  EXPECT_THROW(judge_growth({{1}}), Error);
}

Sweep sweep_of(const std::vector<std::vector<double>>& losses) {
  Sweep sweep;
  double rate = 1e-3;
  for (const std::vector<double>& at_rate : losses) {
    sweep.points.push_back({rate, at_rate});
    rate *= 2;
  }
  return sweep;
}

TEST(Sweep, BestRateHasTheFewestDivergedRuns) {
  const Sweep sweep = sweep_of({{3, 3}, {2.5, 2.6}, {1, kInfinity}});
  EXPECT_EQ(sweep.best().learning_rate, 2e-3);
  EXPECT_EQ(sweep.open_end(), "");
  EXPECT_EQ(sweep_of({{2, 2}, {3, 3}}).open_end(), "the best learning rate, 0.001, is the smallest of the sweep");
  EXPECT_EQ(sweep_of({{3, 3}, {2, 2}}).open_end(), "the best learning rate, 0.002, is the largest of the sweep");
  EXPECT_EQ(sweep_of({{3, 3}}).open_end(), "one learning rate is no sweep");
  EXPECT_THROW((void)Sweep{}.best(), Error);
}

TEST(Sweep, BestRateBetweenThoseOfTheSweepIsTheVertex) {
  // (ln(rate/0.003))² at rates of 0.001, 0.002, 0.004 and 0.008.
  std::vector<std::vector<double>> losses;
  for (const double rate : {1e-3, 2e-3, 4e-3, 8e-3}) losses.push_back({2 + std::pow(std::log(rate / 3e-3), 2)});
  EXPECT_NEAR(sweep_of(losses).best_between(), 3e-3, 1e-12);
  EXPECT_NEAR(sweep_of({{3}, {2}, {3}}).best_between(), 2e-3, 1e-12);
  EXPECT_TRUE(std::isnan(sweep_of({{2}, {3}, {4}}).best_between()));  // at the end
  EXPECT_TRUE(std::isnan(sweep_of({{3}, {2}, {kInfinity}}).best_between()));
}

TEST(Sweep, SensitivityIsTheMeanLossAboveTheBest) {
  // First seed: (min(3, 8) + 2 + min(∞, 8))/3 − 2 = 13/3 − 2; second: (4 + 1 + min(9, 6))/3 − 1.
  const Sweep sweep = sweep_of({{3, 4}, {2, 1}, {kInfinity, 9}});
  const Interval interval = sweep.sensitivity({8, 6});
  EXPECT_NEAR(interval.mean, (13.0 / 3 - 2 + 11.0 / 3 - 1) / 2, 1e-12);
  EXPECT_EQ(interval.count, 2);
  // Among the first and the last rate: (3 + 8)/2 − 3 and (4 + 6)/2 − 4.
  const Interval some = sweep.among({sweep.points[0].learning_rate, sweep.points[2].learning_rate, 77.0})
                            .sensitivity({8, 6});
  EXPECT_NEAR(some.mean, (2.5 + 1) / 2, 1e-12);
}

TEST(Sweep, ArmsAreComparedEachAtItsBest) {
  // At any common rate the first arm is worse by 1; at their best rates they are equal.
  const Sweep slow = sweep_of({{2, 2.01, 2.02}, {3, 3, 3}, {4, 4, 4}});
  const Sweep inside = sweep_of({{5, 5, 5}, {2, 2.01, 2.02}, {4, 4, 4}});
  const Sweep fast = sweep_of({{4, 4, 4}, {3, 3, 3}, {2, 2.01, 2.02}, {2.5, 2.5, 2.5}});
  EXPECT_EQ(judge_best(inside, fast, Region::around(0, 0.05)).outcome, Outcome::supported);
  const Judgment open = judge_best(slow, fast, Region::around(0, 0.05));
  EXPECT_EQ(open.outcome, Outcome::undecided);
  EXPECT_EQ(open.reason, "the best learning rate, 0.001, is the smallest of the sweep");
}

TEST(Judgments, ReplacedWhereTheSettingCannotCarryTheClaim) {
  const Judgment decided = judge({1, 1, 1}, Region::above(0));
  EXPECT_EQ(not_testable_because(decided, "").outcome, Outcome::supported);
  const Judgment replaced = not_testable_because(decided, "too small");
  EXPECT_EQ(replaced.outcome, Outcome::not_testable);
  EXPECT_EQ(replaced.reason, "too small");
  EXPECT_EQ(replaced.effect.mean, 1);
  EXPECT_EQ(undecided_because(replaced, "open").outcome, Outcome::not_testable);
  EXPECT_EQ(undecided_because(decided, "open").outcome, Outcome::undecided);
  EXPECT_EQ(to_string(Outcome::not_testable), "not testable here");
}

}  // namespace
}  // namespace plumb
