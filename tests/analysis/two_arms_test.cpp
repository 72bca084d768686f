// Two arms of runs: intervals against SciPy's, looks, and how often verdicts err, by simulation.
#include "plumb/analysis/two_arms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/random.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr double kDiverged = std::numeric_limits<double>::infinity();
const std::vector<double> kFirst = {2.31, 2.35, 2.33, 2.30, 2.34};
const std::vector<double> kSecond = {2.28, 2.30, 2.27, 2.29, 2.31};

// scipy: d ± t.ppf(0.95, degrees) · √(s₁²/n₁ + s₂²/n₂), with 7 of Welch's 7.476 degrees, and with 3 − 1.
TEST(TwoArms, IntervalIsWelchs) {
  const Interval five = compare_arms(kFirst, kSecond, {}).judgment.effect;
  EXPECT_NEAR(five.mean, 0.036, 1e-12);
  EXPECT_NEAR(five.low, 0.013905606585433675, 1e-12);
  EXPECT_NEAR(five.high, 0.0580943934145655, 1e-12);
  const Interval three = compare_arms(kFirst, {2.2, 2.5, 2.1}, {}).judgment.effect;
  EXPECT_NEAR(three.low, -0.29264842456718226, 1e-12);
  EXPECT_NEAR(three.high, 0.4113150912338474, 1e-12);
}

// scipy.stats.ttest_rel(a, b).confidence_interval(0.9)
TEST(TwoArms, BySeedItIsStudents) {
  const ArmComparison paired = compare_arms(kFirst, kSecond, {.by_seed = true});
  EXPECT_NEAR(paired.judgment.effect.low, 0.01741499059058027, 1e-12);
  EXPECT_NEAR(paired.judgment.effect.high, 0.05458500940941978, 1e-12);
  EXPECT_THROW(compare_arms(kFirst, {2.2, 2.5, 2.1}, {.by_seed = true}), Error);
}

// d ± t.ppf(0.95, 4) · s · √(1 + 1/5): the interval of one new run of the arm that was repeated, on either side.
TEST(TwoArms, OneRunAgainstSeveralHasThePredictionInterval) {
  for (const bool first : {true, false}) {
    const std::vector<double> one = {2.2};
    const ArmComparison found = first ? compare_arms(kFirst, one, {}) : compare_arms(one, kFirst, {});
    EXPECT_TRUE(found.one_run);
    EXPECT_EQ(found.judgment.outcome, first ? Outcome::supported : Outcome::contradicted);
    EXPECT_NEAR(found.judgment.effect.mean, first ? 0.126 : -0.126, 1e-12);
    EXPECT_NEAR(first ? found.judgment.effect.low : -found.judgment.effect.high, 0.0775737, 1e-6);
    EXPECT_CONTAINS(found.judgment.rule, "90% interval of one new run");
  }
  EXPECT_EQ(compare_arms(kFirst, {2.3}, {}).judgment.outcome, Outcome::undecided);
  // Two runs do not tell the noise; a plan of looks begins with the third; by seed, one difference has no interval.
  for (const ArmComparison& open :
       {compare_arms({2.31, 2.35}, {1}, {}), compare_arms(kFirst, {1}, {.planned_seeds = 8}),
        compare_arms({2.31}, {1}, {.by_seed = true})}) {
    EXPECT_FALSE(open.one_run);
    EXPECT_EQ(open.judgment.outcome, Outcome::undecided);
    EXPECT_EQ(open.judgment.reason, "one run says nothing about luck: repeat it with two more seeds");
  }
  EXPECT_EQ(compare_arms(kFirst, {kDiverged}, {}).judgment.outcome, Outcome::undecided);
  EXPECT_EQ(compare_arms({2.31, 2.35, 2.33, kDiverged}, {1}, {}).judgment.outcome, Outcome::undecided);
}

// Of 20,000 single runs that are like the others, one in twenty is called better, and one in twenty worse.
TEST(TwoArms, OneRunAgainstSeveralErrsAsOftenAsItSays) {
  constexpr int kTrials = 20'000;
  int better = 0, worse = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<uint64_t>(trial), "one run against several");
    std::vector<double> several(4);
    for (double& loss : several) loss = random.normal();
    const Outcome outcome = compare_arms(several, {random.normal()}, {}).judgment.outcome;
    better += outcome == Outcome::supported ? 1 : 0;
    worse += outcome == Outcome::contradicted ? 1 : 0;
  }
  EXPECT_NEAR(better, kTrials / 20, 100);  // three standard errors are 92
  EXPECT_NEAR(worse, kTrials / 20, 100);
}

TEST(TwoArms, VerdictsByTheMargin) {
  const auto outcome = [](const std::vector<double>& first, const std::vector<double>& second, double margin) {
    return compare_arms(first, second, {.margin = margin}).judgment.outcome;
  };
  EXPECT_EQ(outcome(kFirst, kSecond, 0), Outcome::supported);
  EXPECT_EQ(outcome(kFirst, kSecond, 0.03), Outcome::undecided);
  EXPECT_EQ(outcome(kFirst, kSecond, 0.06), Outcome::smaller);
  EXPECT_EQ(outcome(kSecond, kFirst, 0), Outcome::contradicted);
  EXPECT_EQ(outcome(kSecond, kFirst, 0.06), Outcome::contradicted);
  EXPECT_EQ(outcome({2.3, 2.4}, {1.3, 1.4}, 0), Outcome::undecided);
}

TEST(TwoArms, FailedRunsAreCounted) {
  const std::vector<double> failed(4, kDiverged);
  EXPECT_EQ(compare_arms(failed, {1, 1.1, 1.2, 1.3}, {}).judgment.outcome, Outcome::supported);
  EXPECT_EQ(compare_arms({1, 1.1, 1.2, 1.3, 1.4}, failed, {}).judgment.outcome, Outcome::contradicted);
  EXPECT_EQ(compare_arms(failed, failed, {}).judgment.outcome, Outcome::not_testable);
  const Judgment one = compare_arms({1, 1.1, 1.2, kDiverged}, {2, 2.1, 2.2, 2.3, 2.4}, {}).judgment;
  EXPECT_EQ(one.outcome, Outcome::undecided);
  EXPECT_EQ(one.reason, "1 of 4 and 0 of 5 runs failed");
}

TEST(TwoArms, RepetitionsOfOneSeedDecideNothing) {
  const Judgment judgment = compare_arms({1, 1, 1}, {0.5, 0.5, 0.5}, {}).judgment;
  EXPECT_EQ(judgment.outcome, Outcome::undecided);
  EXPECT_CONTAINS(judgment.reason, "repeated with one seed");
}

// By the noncentral t distribution (scipy.stats.nct): at 5%, 80 of 100 comparisons are decided with 4, 14 and 51 seeds
// if the gain is 2, 1 and half a deviation. The formula is an approximation, which errs upwards with few seeds.
TEST(TwoArms, SeedsThatWouldDecide) {
  const auto needed = [](double gain) {
    // Four values with deviation 1. A permitted error of almost nothing leaves each comparison undecided.
    const double x = std::sqrt(1.5);
    const std::vector<double> first = {x, -x, 0, 0};
    std::vector<double> second = first;
    for (double& value : second) value -= gain;
    ArmComparison comparison = compare_arms(first, second, {.error = 1e-6});
    comparison.level = 0.05;
    return seeds_needed(comparison, {});
  };
  EXPECT_EQ(needed(1), 14);
  EXPECT_EQ(needed(0.5), 51);
  EXPECT_EQ(needed(0.001), std::nullopt);
}

// scipy: t.ppf(0.975, 8) · √(2 · pooled variance)
TEST(TwoArms, NoiseFloorIsOfRunsThatDifferInTheSeed) {
  EXPECT_NEAR(noise_floor({kFirst, kSecond, {kDiverged, 3}}), 0.060133230818521115, 1e-12);
  EXPECT_TRUE(std::isnan(noise_floor({{1}, {2}})));
}

TEST(TwoArms, LaterLooksThanPlannedAreRefused) {
  EXPECT_EQ(compare_arms(kFirst, kSecond, {.planned_seeds = 8}).level, look_levels(8, 0.05, false)[2]);
  test::expect_error([] { compare_arms(kFirst, kSecond, {.planned_seeds = 4}); }, "planned up to 4");
  EXPECT_THROW(look_levels(2, 0.05, false), Error);
}

/// A row of the table in docs/verdicts.md.
struct ArmCase {
  std::string name;
  int first = 5, second = 5;  // seeds
  double gain = 0;            // in deviations of a run of the first arm
  double ratio = 1;           // of the second arm's deviation
  double shared = 0;          // share of the variance that both runs of a seed have in common
  ArmRule rule{};
};

/// Outcomes in percent of 20,000 comparisons; with looks, each ends at the first that decides.
struct Shares {
  double supported = 0, contradicted = 0;
};

Shares simulate(const ArmCase& one) {
  constexpr int kTrials = 20000;
  const std::vector<double> levels = one.rule.planned_seeds == 0
                                         ? std::vector<double>{one.rule.error}
                                         : look_levels(one.rule.planned_seeds, one.rule.error, one.rule.by_seed);
  Shares shares;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<uint64_t>(trial), one.name);
    std::vector<double> first, second;
    for (int seed = 0; seed < std::max(one.first, one.second); ++seed) {
      const double common = std::sqrt(one.shared) * random.normal();
      const double own = std::sqrt(1 - one.shared);
      first.push_back(common + own * random.normal());
      second.push_back(one.ratio * (common + own * random.normal()) - one.gain);
    }
    first.resize(static_cast<size_t>(one.first));
    second.resize(static_cast<size_t>(one.second));
    ArmRule rule = one.rule;
    rule.planned_seeds = 0;
    Outcome outcome = Outcome::undecided;
    for (size_t look = 0; look < levels.size() && outcome == Outcome::undecided; ++look) {
      const size_t left = levels.size() - 1 - look;
      rule.error = levels[look];
      outcome = compare_arms({first.begin(), first.end() - static_cast<std::ptrdiff_t>(left)},
                             {second.begin(), second.end() - static_cast<std::ptrdiff_t>(left)}, rule)
                    .judgment.outcome;
    }
    shares.supported += outcome == Outcome::supported ? 100.0 / kTrials : 0;
    shares.contradicted += outcome == Outcome::contradicted ? 100.0 / kTrials : 0;
  }
  return shares;
}

TEST(TwoArms, ErrAtMostInOneOfTwentyCasesAsDocumented) {
  const std::vector<ArmCase> cases = {
      {.name = "equal arms, 3 seeds", .first = 3, .second = 3},
      {.name = "equal arms, 5 seeds"},
      {.name = "equal arms, 10 seeds", .first = 10, .second = 10},
      {.name = "equal arms, 3 and 8 seeds", .first = 3, .second = 8},
      {.name = "one arm twice as noisy, 5 seeds", .ratio = 2},
      {.name = "the arm of 3 seeds three times as noisy as that of 8", .first = 8, .second = 3, .ratio = 3},
      {.name = "equal arms by seed, 5 seeds", .shared = 0.5, .rule = {.by_seed = true}},
      {.name = "gain of just the margin, 5 seeds", .gain = 1, .rule = {.margin = 1}},
      {.name = "equal arms, looks after 3, 4 and 5 seeds", .rule = {.planned_seeds = 5}},
      {.name = "equal arms, looks after each of 3 to 10 seeds",
       .first = 10,
       .second = 10,
       .rule = {.planned_seeds = 10}},
      {.name = "equal arms by seed, looks after 3, 4 and 5 seeds", .rule = {.by_seed = true, .planned_seeds = 5}},
      {.name = "one arm twice as noisy, looks after 3, 4 and 5 seeds", .ratio = 2, .rule = {.planned_seeds = 5}},
      {.name = "better by 2 deviations, 3 seeds", .first = 3, .second = 3, .gain = 2},
      {.name = "better by 2 deviations, 5 seeds", .gain = 2},
      {.name = "better by 2 deviations by seed, half of the variance shared, 5 seeds",
       .gain = 2,
       .shared = 0.5,
       .rule = {.by_seed = true}},
      {.name = "better by 2 deviations, looks after 3, 4 and 5 seeds", .gain = 2, .rule = {.planned_seeds = 5}},
      {.name = "better by 1 deviation, 5 seeds", .gain = 1},
      {.name = "better by 1 deviation, looks after each of 3 to 20 seeds",
       .first = 20,
       .second = 20,
       .gain = 1,
       .rule = {.planned_seeds = 20}}};
  const std::string page = read_file(test::source_directory() / "docs" / "verdicts.md");
  // Three standard errors of a share of 5% among 20,000.
  constexpr double kNoise = 0.46;
  for (const ArmCase& one : cases) {
    const Shares shares = simulate(one);
    const bool better = one.gain > one.rule.margin;
    const std::string row = fmt::format("| {} | {} | {:.1f} | {:.1f} |\n", one.name, better ? "yes" : "no",
                                        shares.supported, shares.contradicted);
    EXPECT_CONTAINS(page, row);
    EXPECT_LE(shares.contradicted, 5 + kNoise) << row;
    EXPECT_LE(better ? 0 : shares.supported, 5 + kNoise) << row;
    EXPECT_GE(one.gain == 2 && one.first == 5 ? shares.supported : 100, 80) << row;
  }
}

// Runs that are looked at after every seed at 5% are called different far more often.
TEST(TwoArms, LooksThatShareNothingErrMoreOften) {
  constexpr int kTrials = 4000;
  int called = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<uint64_t>(trial), "unplanned looks");
    std::vector<double> first, second;
    for (int seed = 1; seed <= 10; ++seed) {
      first.push_back(random.normal());
      second.push_back(random.normal());
      if (seed >= 3 && compare_arms(first, second, {}).judgment.outcome == Outcome::supported) {
        ++called;
        break;
      }
    }
  }
  EXPECT_GT(called, 0.10 * kTrials);
}

}  // namespace
}  // namespace plumb
