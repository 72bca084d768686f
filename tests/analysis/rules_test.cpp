// Rules on made-up measurements: true, false and undecidable claims, and diverged runs.
#include "plumb/analysis/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "plumb/analysis/sweep.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "support/contains.h"

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

// An increase of more than 0.1 is claimed; 1 ± 0.24841 times a factor.
TEST(Judge, AnEffectThatGoesTheClaimsWayDoesNotContradictIt) {
  const auto outcome = [](double mean, double factor) {
    return judge({mean - 0.1 * factor, mean, mean + 0.1 * factor}, Region::above(0.1, 0)).outcome;
  };
  EXPECT_EQ(outcome(0.36, 1), Outcome::supported);
  EXPECT_EQ(outcome(0.05, 0.1), Outcome::smaller);  // an increase: 0.025 to 0.075
  EXPECT_EQ(outcome(0.0, 0.1), Outcome::smaller);   // none, or a small one of either sign
  EXPECT_EQ(outcome(-0.03, 0.1), Outcome::contradicted);
  EXPECT_EQ(outcome(0.0, 1), Outcome::undecided);
  EXPECT_EQ(outcome(-0.2, 1), Outcome::smaller);  // −0.448 to 0.048: contains a small increase
  EXPECT_EQ(judge({1.9, 2.0, 2.1}, Region::above(1.1, 1), Scale::logarithmic).outcome, Outcome::supported);
  EXPECT_EQ(judge({1.04, 1.05, 1.06}, Region::above(1.1, 1), Scale::logarithmic).outcome, Outcome::smaller);
  EXPECT_EQ(judge({0.8, 0.81, 0.82}, Region::above(1.1, 1), Scale::logarithmic).outcome, Outcome::contradicted);
  EXPECT_EQ(judge({-0.06, -0.05, -0.04}, Region::below(-0.25, 0)).outcome, Outcome::smaller);
  EXPECT_EQ(judge({0.04, 0.05, 0.06}, Region::below(-0.25, 0)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge({0.05, 0.06, 0.07}, Region::above(0.1)).outcome, Outcome::contradicted);  // the claim has no null
  EXPECT_EQ(to_string(Outcome::smaller), "no effect of that size");
}

// A law that predicts no better than the last measurement tells nothing.
TEST(JudgePrediction, IsSupportedOnlyWhereNoLawWouldFail) {
  const std::vector<double> good = {-0.01, 0.0, 0.01}, bad = {0.19, 0.20, 0.21}, vague = {-0.03, 0.02, 0.07};
  const auto outcome = [](const std::vector<double>& errors, const std::vector<double>& guess) {
    return judge_prediction(errors, guess, "a guess", 0.05).outcome;
  };
  EXPECT_EQ(outcome(good, bad), Outcome::supported);
  EXPECT_EQ(outcome(good, good), Outcome::undecided);
  EXPECT_EQ(outcome(good, vague), Outcome::undecided);
  EXPECT_EQ(outcome(bad, bad), Outcome::contradicted);
  EXPECT_EQ(outcome(bad, good), Outcome::contradicted);
  EXPECT_EQ(outcome(vague, bad), Outcome::undecided);
  const Judgment judged = judge_prediction(good, {-0.02, -0.03, -0.04}, "a guess", 0.05);
  EXPECT_NEAR(judged.effect.mean, 0, 1e-15);
  EXPECT_EQ(judged.reason.find("a guess may predict as well: off by −0.03 ("), 0U) << judged.reason;
  EXPECT_CONTAINS(judged.rule, "supported only if the interval of the errors of a guess lies outside");
}

// Whatever was measured, a claim of an effect is contradicted only if the interval excludes every effect in its
// direction, and its mirror image is judged alike.
TEST(Judge, ContradictionExcludesEveryEffectInTheClaimsDirection) {
  Random random(1, "contradiction");
  std::set<Outcome> seen;
  for (int i = 0; i < 2000; ++i) {
    const double margin = random.uniform(), mean = 2 * random.normal(), noise = random.uniform();
    std::vector<double> values, mirrored;
    for (int k = 0; k < 3 + i % 4; ++k) {
      values.push_back(mean + noise * random.normal());
      mirrored.push_back(-values.back());
    }
    const Judgment judgment = judge(values, Region::above(margin, 0));
    seen.insert(judgment.outcome);
    EXPECT_EQ(judgment.outcome == Outcome::contradicted, judgment.effect.high <= 0);
    EXPECT_EQ(judgment.outcome == Outcome::supported, judgment.effect.low > margin);
    EXPECT_EQ(judge(mirrored, Region::below(-margin, 0)).outcome, judgment.outcome);
  }
  EXPECT_EQ(seen.size(), 4U);
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

TEST(Judge, OneOrTwoSeedsAndMissingNumbersDecideNothing) {
  const Judgment two = judge({5, 5.001}, Region::above(0));
  EXPECT_EQ(two.outcome, Outcome::undecided);
  EXPECT_EQ(two.reason, "two seeds never decide");
  EXPECT_EQ(two.effect.count, 2);
  EXPECT_EQ(judge({5, 5.001, 5}, Region::above(0)).outcome, Outcome::supported);
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
  // 3 ± 0.3583 against above 3.4 contradicts; 0 ± 2.48 against above 0.4 has as little room and does not.
  const Judgment shown = judge_each({{{-1, 0, 1}, Region::above(0.4)}, {three, Region::above(3.4)}});
  EXPECT_EQ(shown.outcome, Outcome::contradicted);
  EXPECT_NEAR(shown.effect.mean, 3, 1e-12);
  EXPECT_CONTAINS(both.rule, "in each of 2 conditions, of which this is the worst");
}

TEST(JudgeReadings, ADenominatorCannotTurnTheVerdict) {
  const QuantityReading as_large = {"by itself", {0.9, 1.0, 1.1}};
  const QuantityReading smaller = {"relative to layer 6", {0.19, 0.2, 0.21}};
  const Region region = Region::above(1 / 1.5);
  EXPECT_EQ(judge_readings({as_large}, region, Scale::logarithmic).outcome, Outcome::supported);
  EXPECT_EQ(judge_readings({smaller}, region, Scale::logarithmic).outcome, Outcome::contradicted);
  const Judgment both = judge_readings({as_large, smaller}, region, Scale::logarithmic);
  EXPECT_EQ(both.outcome, Outcome::undecided);
  EXPECT_EQ(judge_readings({smaller, as_large}, region, Scale::logarithmic).outcome, Outcome::undecided);
  EXPECT_EQ(both.effect.mean, judge(as_large.values, region, Scale::logarithmic).effect.mean);
  // e^±(4.3026527 · s/√3), s of ln 0.19, ln 0.2 and ln 0.21: 0.0500 → 0.1996 · e^∓0.1243.
  EXPECT_EQ(both.reason, "relative to layer 6: 0.2 (0.176 to 0.226)");
  EXPECT_EQ(judge_readings({as_large, as_large}, region, Scale::logarithmic).outcome, Outcome::supported);
  EXPECT_THROW(judge_readings({}, region), Error);
}

TEST(JudgeDifference, FinishedRunsByTheirInterval) {
  EXPECT_EQ(judge_difference({3.0, 3.1, 3.2}, {2.0, 2.1, 2.21}, Region::above(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_difference({2.0, 2.1, 2.2}, {3.0, 3.1, 3.21}, Region::above(0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference({2.0, 2.5, 2.2}, {2.3, 2.1, 2.2}, Region::above(0.1)).outcome, Outcome::undecided);
  EXPECT_THROW(judge_difference({1}, {1, 2}, {}), Error);
}

TEST(JudgeDifference, EveryRunFailedIsNoFinding) {
  const std::vector<double> all = {kInfinity, kInfinity, kInfinity};
  for (const Region& region : {Region::above(0.1), Region::below(0.1), Region::around(0, 0.1)}) {
    const Judgment judgment = judge_difference(all, all, region);
    EXPECT_EQ(judgment.outcome, Outcome::not_testable);
    EXPECT_EQ(judgment.reason, "every run failed");
  }
}

TEST(JudgeDifference, FailureIsALargerLoss) {
  const std::vector<double> all = {kInfinity, kInfinity, kInfinity};
  const std::vector<double> none = {2.0, 2.1, 2.2};
  EXPECT_EQ(judge_difference(all, none, Region::above(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_difference(all, none, Region::below(0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference(all, none, Region::around(0, 0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference(none, all, Region::above(0.1)).outcome, Outcome::contradicted);
  EXPECT_EQ(judge_difference(none, all, Region::below(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_difference(none, all, Region::around(0, 0.1)).outcome, Outcome::contradicted);
}

TEST(JudgeDifference, OneFailedRunOfThreeDecidesNothing) {
  const Judgment one = judge_difference({kInfinity, 2.1, 2.2}, {2.0, 2.1, 2.2}, Region::below(0.1));
  EXPECT_EQ(one.outcome, Outcome::undecided);  // not "as good", though the others are equal
  EXPECT_EQ(one.reason, "1 and 0 of 3 runs failed");
  EXPECT_EQ(one.effect.count, 2);
  EXPECT_EQ(judge_difference({kInfinity}, {2.0}, Region::above(0.1)).outcome, Outcome::undecided);  // one seed
}

// What a failed run overshoots by is no effect: no run counts with more than the labels' frequencies have, 5.67 here.
TEST(JudgeDifference, NoRunCountsWithMoreThanOneThatLearnedNothing) {
  const auto judged = [](const std::vector<double>& first, const std::vector<double>& second, const Region& region) {
    return judge_difference(first, second, region, kConfidence, 5.67);
  };
  // 0.31, 0 and 0.33: mean 0.64/3, s = 0.185023, half-width 4.3026527 · s/√3.
  const Judgment partly = judged({8.03, 7.69, 8.73}, {5.36, 6.00, 5.34}, Region::above(0.1, 0));
  EXPECT_EQ(partly.outcome, Outcome::undecided);
  EXPECT_NEAR(partly.effect.mean, 0.64 / 3, 1e-12);
  EXPECT_NEAR(partly.effect.high, 0.64 / 3 + 0.459620, 1e-5);
  EXPECT_EQ(partly.reason, "3 and 1 of 3 runs failed");
  EXPECT_CONTAINS(partly.rule, "no run counts with more than 5.67");
  // However far apart failed runs end, and though one diverged, the difference of 2.75 is sure.
  const Judgment sure = judged({6.69, kInfinity, 12}, {2.90, 2.92, 2.94}, Region::above(1, 0));
  EXPECT_EQ(sure.outcome, Outcome::supported);
  EXPECT_NEAR(sure.effect.mean, 2.75, 1e-12);
  EXPECT_EQ(sure.effect.count, 3);
  EXPECT_EQ(judged({2.90, 2.92, 2.94}, {6.69, kInfinity, 12}, Region::around(0, 0.1)).outcome, Outcome::contradicted);
  // A run that hardly learned is not much better than one that failed.
  EXPECT_EQ(judged({6, 7, 8}, {5.63, 5.64, 5.65}, Region::above(0.1, 0)).outcome, Outcome::smaller);
  for (const Region& region : {Region::above(0.1), Region::below(0.1), Region::around(0, 0.1)})
    EXPECT_EQ(judged({6, 7, 8}, {5.67, 5.8, kInfinity}, region).outcome, Outcome::not_testable);
  EXPECT_EQ(judged({3.0, 3.1, 3.2}, {2.0, 2.1, 2.21}, Region::above(0.1)).rule,
            judge_difference({3.0, 3.1, 3.2}, {2.0, 2.1, 2.21}, Region::above(0.1)).rule);
}

TEST(Failure, FishersExactTest) {
  EXPECT_NEAR(failure_p_value(3, 3, 0, 3), 1.0 / 20, 1e-12);    // 1/(6 choose 3)
  EXPECT_NEAR(failure_p_value(5, 5, 0, 5), 1.0 / 252, 1e-12);   // 1/(10 choose 5)
  EXPECT_NEAR(failure_p_value(2, 3, 0, 3), 3.0 / 15, 1e-12);    // (3 choose 2)/(6 choose 2)
  EXPECT_NEAR(failure_p_value(4, 5, 1, 5), 26.0 / 252, 1e-12);  // 25 + 1 of (10 choose 5)
  EXPECT_NEAR(failure_p_value(0, 3, 3, 3), 1, 1e-12);
  // A probability of exactly 5% decides, whichever way its last bit is rounded: 3 of 3 against 0 of 3, and 1/20 is no
  // binary fraction.
  EXPECT_EQ(failure_p_value(3, 3, 0, 3), 0.05);
  const std::vector<double> all = {kInfinity, kInfinity, kInfinity};
  EXPECT_EQ(judge_difference(all, {2, 2, 2}, Region::above(0.1)).outcome, Outcome::supported);
}

// The probabilities of every table with the same margins sum to one.
TEST(Failure, ProbabilitiesSumToOne) {
  for (int64_t runs = 1; runs <= 12; ++runs) {
    for (int64_t failed = 0; failed <= 2 * runs; ++failed) {
      const int64_t least = std::max<int64_t>(0, failed - runs), most = std::min(failed, runs);
      EXPECT_NEAR(failure_p_value(least, runs, failed - least, runs), 1, 1e-12);
      double sum = 0;
      for (int64_t k = least; k <= most; ++k)
        sum += failure_p_value(k, runs, failed - k, runs) -
               (k < most ? failure_p_value(k + 1, runs, failed - k - 1, runs) : 0);
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
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

TEST(Sweep, BestRateHasTheFewestFailedRuns) {
  const Sweep sweep = sweep_of({{3, 3}, {2.5, 2.6}, {1, kInfinity}});
  EXPECT_EQ(sweep.best().learning_rate, 2e-3);
  EXPECT_EQ(sweep.open_end(), "");
  EXPECT_EQ(sweep_of({{2, 2}, {3, 3}}).open_end(), "the best learning rate, 0.001, is the smallest of the sweep");
  EXPECT_EQ(sweep_of({{3, 3}, {2, 2}}).open_end(), "the best learning rate, 0.002, is the largest of the sweep");
  EXPECT_EQ(sweep_of({{3, 3}}).open_end(), "one learning rate is no sweep");
  EXPECT_THROW((void)Sweep{}.best(), Error);
  // A finite loss can be a failure: 7.9 and 5.8 where nothing is learned at 5.7.
  Sweep finite = sweep_of({{5.2, 5.3}, {7.9, 1.0}, {5.8, 5.9}});
  EXPECT_EQ(finite.best().learning_rate, 2e-3);
  finite.failed_at = 5.7;
  EXPECT_EQ(finite.best().learning_rate, 1e-3);
  EXPECT_EQ(finite.best_losses(), (std::vector<double>{5.2, 5.3}));
  Sweep all_failed = sweep_of({{5.9, 6}, {5.75, 5.8}, {kInfinity, kInfinity}});
  all_failed.failed_at = 5.7;
  EXPECT_EQ(all_failed.best().learning_rate, 2e-3);
  EXPECT_EQ(all_failed.best_losses(), (std::vector<double>{kInfinity, kInfinity}));
  EXPECT_EQ(all_failed.counted(all_failed.points[2].losses), (std::vector<double>{5.7, 5.7}));
  // With one failed run at either rate, how far it ends beyond 5.7 does not choose the rate.
  Sweep overshooting = sweep_of({{5.4, 5.4, 5.8}, {5.2, 5.3, 9}});
  EXPECT_EQ(overshooting.best().learning_rate, 1e-3);
  overshooting.failed_at = 5.7;
  EXPECT_EQ(overshooting.best().learning_rate, 2e-3);
}

TEST(Sweep, BestRateBetweenThoseOfTheSweepIsTheVertex) {
  // (ln(rate/0.003))² at rates of 0.001, 0.002, 0.004 and 0.008.
  std::vector<std::vector<double>> losses;
  for (const double rate : {1e-3, 2e-3, 4e-3, 8e-3}) losses.push_back({2 + std::pow(std::log(rate / 3e-3), 2)});
  EXPECT_NEAR(sweep_of(losses).best_between(), 3e-3, 1e-12);
  EXPECT_NEAR(sweep_of({{3}, {2}, {3}}).best_between(), 2e-3, 1e-12);
  EXPECT_TRUE(std::isnan(sweep_of({{2}, {3}, {4}}).best_between()));  // at the end
  EXPECT_TRUE(std::isnan(sweep_of({{3}, {2}, {kInfinity}}).best_between()));
  // The vertex has a loss of 2, and the best rate of the sweep, 0.004, one of ln²(4/3) more.
  EXPECT_NEAR(sweep_of(losses).gain_between(), std::pow(std::log(4.0 / 3), 2), 1e-12);
  EXPECT_NEAR(sweep_of({{3}, {2}, {3}}).gain_between(), 0, 1e-12);
  EXPECT_EQ(sweep_of({{2}, {3}, {4}}).gain_between(), kInfinity);
  EXPECT_EQ(sweep_of({{3}, {2}, {kInfinity}}).gain_between(), kInfinity);
  Sweep beside_failure = sweep_of({{3}, {2}, {4}});
  beside_failure.failed_at = 3.5;
  EXPECT_EQ(beside_failure.gain_between(), kInfinity);
}

TEST(Sweep, ChoiceWithoutOneOfTheSeeds) {
  // Without the third seed the first rate is better, 2 against 2.05.
  EXPECT_EQ(sweep_of({{2, 2, 3}, {2.05, 2.05, 2.05}}).unstable_seeds(), 1);
  EXPECT_EQ(sweep_of({{2, 2, 2}, {3, 3, 3}}).unstable_seeds(), 0);
  EXPECT_EQ(sweep_of({{2}, {3}}).unstable_seeds(), 0);
}

TEST(Sweep, SensitivityIsTheMeanLossAboveTheBest) {
  // First seed: (min(3, 8) + 2 + min(∞, 8))/3 − 2 = 13/3 − 2; second: (4 + 1 + min(9, 6))/3 − 1.
  const Sweep sweep = sweep_of({{3, 4}, {2, 1}, {kInfinity, 9}});
  const Interval interval = sweep.sensitivity({8, 6});
  EXPECT_NEAR(interval.mean, (13.0 / 3 - 2 + 11.0 / 3 - 1) / 2, 1e-12);
  EXPECT_EQ(interval.count, 2);
  // Among the first and the last rate: (3 + 8)/2 − 3 and (4 + 6)/2 − 4.
  const Interval some =
      sweep.among({sweep.points[0].learning_rate, sweep.points[2].learning_rate, 77.0}).sensitivity({8, 6});
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

TEST(Sweep, WhatLiesBetweenTheRatesCanTurnTheVerdict) {
  // The first arm is worse by 0.2 at the rates of the sweep, but its minimum may lie between them: through 0.4, 0 and 0
  // with equal steps, the vertex is at −0.4²/(8 · 0.4) = −0.05, so at least 0.15 remains; through 4, 0 and 0, −0.5.
  const Sweep second = sweep_of({{4, 4, 4}, {2, 2.01, 2.02}, {4, 4, 4}});
  const auto first = [](double slower) {
    return sweep_of({{2.2 + slower, 2.21 + slower, 2.22 + slower}, {2.2, 2.21, 2.22}, {2.2, 2.21, 2.22}, {9, 9, 9}});
  };
  EXPECT_EQ(judge_best(first(0.4), second, Region::above(0.1, 0)).outcome, Outcome::supported);
  const Judgment turned = judge_best(first(4), second, Region::above(0.1, 0));
  EXPECT_EQ(turned.outcome, Outcome::undecided);
  EXPECT_TRUE(turned.reason.starts_with("between the rates of their sweeps, the first arm may gain 0.5 and the second"))
      << turned.reason;
  EXPECT_NEAR(turned.effect.mean, 0.2, 1e-12);
  // A gain of the second arm would only enlarge the difference.
  EXPECT_EQ(judge_best(second, first(4), Region::below(0)).outcome, Outcome::undecided);
  EXPECT_EQ(judge_best(second, first(4), Region::below(1)).outcome, Outcome::supported);
  // Beside failed runs, the gain is unknown.
  const Sweep edge = sweep_of({{3, 3, 3}, {2.2, 2.21, 2.22}, {kInfinity, 3, 3}});
  EXPECT_EQ(judge_best(edge, second, Region::above(0.1, 0)).outcome, Outcome::undecided);
  EXPECT_EQ(judge_best(second, edge, Region::below(0)).outcome, Outcome::undecided);
  EXPECT_EQ(judge_best(edge, second, Region::below(1)).outcome, Outcome::supported);  // a gain would only help
  EXPECT_EQ(judge_best(second, edge, Region::above(-1)).outcome, Outcome::supported);
}

TEST(Sweep, RunsThatLearnNothingHaveFailed) {
  const auto arm = [](double loss, double failed_at) {
    Sweep sweep = sweep_of({{6, 6, 6}, {loss, loss, loss}, {6, 6, 6}});
    sweep.failed_at = failed_at;
    return sweep;
  };
  EXPECT_EQ(judge_best(arm(5.8, kInfinity), arm(5.75, kInfinity), Region::around(0, 0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_best(arm(5.8, 5.7), arm(5.75, 5.7), Region::around(0, 0.1)).outcome, Outcome::not_testable);
  // Where every run of three rates failed, nothing is gained between them.
  EXPECT_EQ(judge_best(arm(5.75, 5.7), arm(4, 5.7), Region::above(0.1, 0)).outcome, Outcome::supported);
  EXPECT_NEAR(judge_best(arm(5.75, 5.7), arm(4, 5.7), Region::above(0.1, 0)).effect.mean, 1.7, 1e-12);
  EXPECT_EQ(judge_best(arm(5.75, 5.7), arm(5.69, 5.7), Region::above(0.1, 0)).outcome, Outcome::undecided);
}

// Two of three runs failed beside the best rate, so what lies between is unknown, also where losses are averaged.
TEST(Sweep, AveragedFailuresDoNotHideWhatLiesBetween) {
  const auto sweep = [](const std::vector<std::vector<double>>& losses) {
    Sweep made = sweep_of(losses);
    made.failed_at = 5.7;
    return made;
  };
  const Sweep good = sweep({{4, 4, 4}, {2, 2.01, 2.02}, {4, 4, 4}});
  const Sweep partly = sweep({{8, 8, 4}, {9, 5.1, 5.2}, {8, 8, 8}});
  const Judgment judgment = judge_best(partly, good, Region::above(0.1, 0));
  EXPECT_GT(judgment.effect.low, 0.1);  // 3.7, 3.09 and 3.18
  EXPECT_EQ(judgment.outcome, Outcome::undecided);
  EXPECT_CONTAINS(judgment.reason, "1 and 0 of 3 runs failed");
  EXPECT_CONTAINS(judgment.reason, "may gain an unknown amount");
}

TEST(Sweep, AreJudgedAtTheConfidenceThatIsAskedFor) {
  // 0.13 ± 4.3026527 · s/√3, s = 0.01: 0.105; ± 6.2053 · s/√3 at 97.5%: 0.094.
  const Sweep second = sweep_of({{4, 4, 4}, {2, 2, 2}, {4, 4, 4}});
  const Sweep first = sweep_of({{4, 4, 4}, {2.12, 2.13, 2.14}, {4, 4, 4}});
  EXPECT_EQ(judge_best(first, second, Region::above(0.1)).outcome, Outcome::supported);
  EXPECT_EQ(judge_best(first, second, Region::above(0.1), 0.975).outcome, Outcome::undecided);
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
  EXPECT_EQ(to_string(Outcome::not_testable), "this setting cannot test it");
}

}  // namespace
}  // namespace plumb
