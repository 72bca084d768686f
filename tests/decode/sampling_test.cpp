// The distribution of the next token compared with hand-computed probabilities, and samples compared with it.
#include "plumb/decode/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/ops/top_scores.h"
#include "support/errors.h"

namespace plumb {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Probabilities = std::map<int32_t, double>;

std::vector<double> logs(const std::vector<double>& probabilities) {
  std::vector<double> logits;
  for (const double p : probabilities) logits.push_back(std::log(p));
  return logits;
}

void expect_distribution(const SamplingOptions& options, const std::vector<double>& logits,
                         const Probabilities& expected, const std::vector<int32_t>& seen = {},
                         const std::vector<int32_t>& forbidden = {}) {
  const std::vector<NextToken> found = Sampler(options, forbidden).distribution(logits, seen);
  ASSERT_EQ(found.size(), expected.size());
  auto place = expected.begin();
  for (const NextToken& token : found) {
    EXPECT_EQ(token.id, place->first);
    EXPECT_NEAR(token.probability, place->second, 1e-15) << token.id;
    ++place;
  }
}

SamplingOptions with(double SamplingOptions::*field, double value) {
  SamplingOptions options;
  options.*field = value;
  return options;
}

SamplingOptions with_top_k(int64_t k) {
  SamplingOptions options;
  options.top_k = k;
  return options;
}

TEST(Sampling, WithoutFiltersItIsTheSoftmax) {
  expect_distribution({}, logs({0.1, 0.2, 0.3, 0.4}), {{0, 0.1}, {1, 0.2}, {2, 0.3}, {3, 0.4}});
  std::vector<double> moved = logs({0.1, 0.2, 0.3, 0.4});
  for (double& logit : moved) logit += 700;  // its exp overflows
  expect_distribution({}, {-kInfinity, std::log(0.25), std::log(0.75)}, {{1, 0.25}, {2, 0.75}});
  const std::vector<NextToken> found = Sampler({}).distribution(moved, {});
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i].probability, 0.1 * static_cast<double>(i + 1), 1e-13);
}

TEST(Sampling, TemperatureIsAPowerOfTheProbabilities) {
  const std::vector<double> logits = logs({0.1, 0.2, 0.3, 0.4});
  // p² / Σ p², Σ = 0.01 + 0.04 + 0.09 + 0.16
  expect_distribution(with(&SamplingOptions::temperature, 0.5), logits,
                      {{0, 0.01 / 0.3}, {1, 0.04 / 0.3}, {2, 0.09 / 0.3}, {3, 0.16 / 0.3}});
  const double sum = std::sqrt(0.1) + std::sqrt(0.2) + std::sqrt(0.3) + std::sqrt(0.4);
  expect_distribution(
      with(&SamplingOptions::temperature, 2), logits,
      {{0, std::sqrt(0.1) / sum}, {1, std::sqrt(0.2) / sum}, {2, std::sqrt(0.3) / sum}, {3, std::sqrt(0.4) / sum}});
  // A temperature that overflows what it divides is nearly greedy.
  const std::vector<NextToken> cold = Sampler(with(&SamplingOptions::temperature, 1e-300)).distribution(logits, {});
  EXPECT_EQ(cold.back(), (NextToken{3, 1.0}));
  EXPECT_EQ(Sampler(with(&SamplingOptions::temperature, 1e-300)).draw(logits, {}, 0, 0), 3);
}

TEST(Sampling, TemperatureZeroIsGreedyAndTheLowestIdOfEquals) {
  SamplingOptions options = with(&SamplingOptions::temperature, 0);
  expect_distribution(options, {0.5, 2, -1, 2}, {{1, 1.0}});
  options.top_k = 3;
  options.top_p = 0.1;
  expect_distribution(options, {0.5, 2, -1, 2}, {{1, 1.0}});
  expect_distribution(options, {0.5, 2, -1, 2}, {{3, 1.0}}, {}, {1});
  options.repetition_penalty = 10;
  expect_distribution(options, {0.5, 2, -1, 2}, {{0, 1.0}}, {1, 3});  // 2 becomes 0.2
}

TEST(Sampling, TopK) {
  const std::vector<double> logits = logs({0.1, 0.4, 0.3, 0.2});
  expect_distribution(with_top_k(1), logits, {{1, 1.0}});
  expect_distribution(with_top_k(2), logits, {{1, 4.0 / 7}, {2, 3.0 / 7}});
  expect_distribution(with_top_k(3), logits, {{1, 4.0 / 9}, {2, 3.0 / 9}, {3, 2.0 / 9}});
  for (const int64_t k : {0, 4, 1000}) {
    expect_distribution(with_top_k(k), logits, {{0, 0.1}, {1, 0.4}, {2, 0.3}, {3, 0.2}});
  }
  // Ties with the k-th token are kept.
  expect_distribution(with_top_k(2), {1, 3, 1, 1, 0}, [] {
    const double rest = std::exp(-2.0);
    const double sum = 1 + 3 * rest;
    return Probabilities{{0, rest / sum}, {1, 1 / sum}, {2, rest / sum}, {3, rest / sum}};
  }());
  expect_distribution(with_top_k(3), {-kInfinity, 0, -kInfinity}, {{1, 1.0}});
}

TEST(Sampling, TopP) {
  const std::vector<double> logits = logs({0.1, 0.4, 0.3, 0.2});
  expect_distribution(with(&SamplingOptions::top_p, 1e-9), logits, {{1, 1.0}});
  expect_distribution(with(&SamplingOptions::top_p, 0.39), logits, {{1, 1.0}});
  expect_distribution(with(&SamplingOptions::top_p, 0.41), logits, {{1, 4.0 / 7}, {2, 3.0 / 7}});
  expect_distribution(with(&SamplingOptions::top_p, 0.69), logits, {{1, 4.0 / 7}, {2, 3.0 / 7}});
  expect_distribution(with(&SamplingOptions::top_p, 0.71), logits, {{1, 4.0 / 9}, {2, 3.0 / 9}, {3, 2.0 / 9}});
  expect_distribution(with(&SamplingOptions::top_p, 0.95), logits, {{0, 0.1}, {1, 0.4}, {2, 0.3}, {3, 0.2}});
  // Equal probabilities: as few as needed, those with the lower ids.
  expect_distribution(with(&SamplingOptions::top_p, 0.6), {0, 0, 0, 0}, {{0, 1.0 / 3}, {1, 1.0 / 3}, {2, 1.0 / 3}});
  expect_distribution(with(&SamplingOptions::top_p, 0.5), {0, 0, 0, 0}, {{0, 0.5}, {1, 0.5}});
}

TEST(Sampling, TopPOfManyTokens) {
  constexpr size_t kTokens = 3000;
  Random random(1, "top p test");
  std::vector<double> logits(kTokens);
  for (double& logit : logits) logit = random.normal();
  std::vector<double> p(kTokens);
  double sum = 0;
  for (size_t i = 0; i < kTokens; ++i) sum += p[i] = std::exp(logits[i]);
  std::vector<size_t> order(kTokens);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  for (const double top_p : {0.01, 0.2, 0.5, 0.9, 0.999}) {
    std::vector<int32_t> expected;
    for (double so_far = 0; so_far < top_p * sum;) {
      so_far += p[order[expected.size()]];
      expected.push_back(static_cast<int32_t>(order[expected.size()]));
    }
    std::sort(expected.begin(), expected.end());
    std::vector<int32_t> found;
    for (const NextToken& token : Sampler(with(&SamplingOptions::top_p, top_p)).distribution(logits, {})) {
      found.push_back(token.id);
    }
    EXPECT_EQ(found, expected) << top_p;
  }
}

TEST(Sampling, MinP) {
  const std::vector<double> logits = logs({0.1, 0.4, 0.3, 0.2});
  expect_distribution(with(&SamplingOptions::min_p, 0.24), logits, {{0, 0.1}, {1, 0.4}, {2, 0.3}, {3, 0.2}});
  expect_distribution(with(&SamplingOptions::min_p, 0.26), logits, {{1, 4.0 / 9}, {2, 3.0 / 9}, {3, 2.0 / 9}});
  expect_distribution(with(&SamplingOptions::min_p, 0.51), logits, {{1, 4.0 / 7}, {2, 3.0 / 7}});
  expect_distribution(with(&SamplingOptions::min_p, 1), logits, {{1, 1.0}});
}

TEST(Sampling, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  const SamplingOptions options = with(&SamplingOptions::repetition_penalty, 2);
  // Token 1: 2 → 1, token 2: −1 → −2, once no matter how often they were seen; token 3 was not.
  const double sum = std::exp(0.5) + std::exp(1) + std::exp(-2) + std::exp(3);
  expect_distribution(
      options, {0.5, 2, -1, 3},
      {{0, std::exp(0.5) / sum}, {1, std::exp(1) / sum}, {2, std::exp(-2) / sum}, {3, std::exp(3) / sum}},
      {2, 1, 2, 2, 1});
}

TEST(Sampling, EachFilterTakesWhatTheOneBeforeLeaves) {
  const std::vector<double> logits = logs({0.1, 0.4, 0.3, 0.2});
  // Of the two best alone, 4/7 and 3/7, the first has more than half; of all tokens it does not.
  SamplingOptions options = with(&SamplingOptions::top_p, 0.5);
  expect_distribution(options, logits, {{1, 4.0 / 7}, {2, 3.0 / 7}});
  options.top_k = 2;
  expect_distribution(options, logits, {{1, 1.0}});
  // At temperature ½ the first has 16/30, so it alone is the nucleus.
  options = with(&SamplingOptions::top_p, 0.5);
  options.temperature = 0.5;
  expect_distribution(options, logits, {{1, 1.0}});
  // Top-p sees all tokens: 0.4 + 0.3 is too little; among those that min-p keeps, it would be 7/9.
  options = with(&SamplingOptions::top_p, 0.75);
  options.min_p = 0.26;
  expect_distribution(options, logits, {{1, 4.0 / 9}, {2, 3.0 / 9}, {3, 2.0 / 9}});
  // The penalty comes first: it lowers token 1, the best, below the two that top-k keeps.
  options = with_top_k(2);
  options.repetition_penalty = 3;
  expect_distribution(options, logits, {{2, 0.6}, {3, 0.4}}, {1});
}

TEST(Sampling, ForbiddenTokensHaveNoPart) {
  const std::vector<double> logits = logs({0.1, 0.4, 0.3, 0.2});
  expect_distribution({}, logits, {{0, 0.25}, {2, 0.75}}, {}, {1, 3});
  expect_distribution(with_top_k(1), logits, {{2, 1.0}}, {}, {1});
  expect_distribution({}, {kNaN, 0, kInfinity}, {{1, 1.0}}, {}, {0, 2});
}

/// Σ (observed − expected)² / expected.
double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) sum += std::pow(counts[i] - expected[i], 2) / expected[i];
  return sum;
}

TEST(Sampling, DrawsHaveTheDistribution) {
  const std::vector<double> p = {0.05, 0.15, 0.3, 0.5};
  constexpr int64_t kDraws = 20000;
  const Sampler sampler({});
  const auto expected = [&](double draws) {
    std::vector<double> counts;
    for (const double share : p) counts.push_back(share * draws);
    return counts;
  };
  std::vector<double> by_position(4);
  std::vector<double> by_sample(4);
  std::vector<double> neighbors(16);  // of adjacent positions, and of adjacent samples
  std::vector<double> pairs(16);
  int32_t before = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const int32_t id = sampler.draw(logs(p), {}, 0, i);
    ++by_position[static_cast<size_t>(id)];
    if (i % 2 == 1) ++neighbors[4 * static_cast<size_t>(before) + static_cast<size_t>(id)];
    before = id;
    const int32_t of_sample = sampler.draw(logs(p), {}, i, 7);
    ++by_sample[static_cast<size_t>(of_sample)];
    ++pairs[4 * static_cast<size_t>(of_sample) + static_cast<size_t>(sampler.draw(logs(p), {}, i, 8))];
  }
  // 0.999 quantiles of χ² with 3 and 15 degrees of freedom.
  EXPECT_LT(chi_square(by_position, expected(kDraws)), 16.27);
  EXPECT_LT(chi_square(by_sample, expected(kDraws)), 16.27);
  std::vector<double> joint;
  for (const double a : p) {
    for (const double b : p) joint.push_back(a * b);
  }
  for (const auto& [counts, draws] : {std::pair(neighbors, kDraws / 2), std::pair(pairs, kDraws)}) {
    std::vector<double> wanted;
    for (const double share : joint) wanted.push_back(share * static_cast<double>(draws));
    EXPECT_LT(chi_square(counts, wanted), 37.70);
  }
}

TEST(Sampling, ADrawIsAFunctionOfSeedSampleAndPosition) {
  const std::vector<double> logits(1000, 0.0);
  SamplingOptions options;
  const auto draws = [&](int64_t seed, int64_t sample) {
    options.seed = seed;
    const Sampler sampler(options);
    std::vector<int32_t> ids;
    for (int64_t position = 0; position < 20; ++position) ids.push_back(sampler.draw(logits, {}, sample, position));
    return ids;
  };
  EXPECT_EQ(draws(5, 2), draws(5, 2));
  EXPECT_NE(draws(5, 2), draws(6, 2));
  EXPECT_NE(draws(5, 2), draws(5, 3));
  options.seed = 5;
  EXPECT_EQ(Sampler(options).draw(logits, {}, 2, 13), draws(5, 2)[13]);  // without the earlier draws
}

TEST(Sampling, ImprobableTokensDoNotComeOut) {
  // exp(−800) underflows: such tokens have probability 0.
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(Sampler({}).draw(std::vector<double>{-800, 0, -800}, {}, 0, position), 1);
  }
}

void expect_error(const std::string& message, const std::vector<double>& logits) {
  const Error error = test::error_of([&] { (void)Sampler({}).distribution(logits, {}); });
  EXPECT_EQ(error.what(), message);
  EXPECT_FALSE(error.hint().empty());
}

TEST(Sampling, AModelWithoutScoresIsAnError) {
  expect_error("the model has no finite score for any next token", {-kInfinity, -kInfinity});
  expect_error("the model has no finite score for any next token", {kNaN, kInfinity});
  expect_error("the model has no finite score for any next token", {});
  expect_error("the model's score of token 1 is nan", {0, kNaN, 1});
  expect_error("the model's score of token 2 is inf", {0, 1, kInfinity});
  EXPECT_THROW((void)Sampler(with(&SamplingOptions::temperature, 0)).draw(std::vector<double>{kNaN}, {}, 0, 0), Error);
  EXPECT_THROW((void)Sampler({}, {0}).draw(std::vector<double>{1}, {}, 0, 0), Error);
}

TEST(Sampling, ImpossibleOptionsAreErrorsWithHints) {
  const auto refused = [](const SamplingOptions& options) {
    return !test::error_of([&] { validate(options); }).hint().empty();
  };
  EXPECT_FALSE(refused({}));
  for (const double value : {-1.0, kNaN, kInfinity}) {
    EXPECT_TRUE(refused(with(&SamplingOptions::temperature, value))) << value;
    EXPECT_TRUE(refused(with(&SamplingOptions::top_p, value))) << value;
    EXPECT_TRUE(refused(with(&SamplingOptions::min_p, value))) << value;
    EXPECT_TRUE(refused(with(&SamplingOptions::repetition_penalty, value))) << value;
  }
  EXPECT_TRUE(refused(with(&SamplingOptions::top_p, 0)));
  EXPECT_TRUE(refused(with(&SamplingOptions::top_p, 1.1)));
  EXPECT_TRUE(refused(with(&SamplingOptions::min_p, 1.1)));
  EXPECT_TRUE(refused(with(&SamplingOptions::repetition_penalty, 0)));
  EXPECT_TRUE(refused(with_top_k(-1)));
  EXPECT_THROW((void)Sampler(with_top_k(-1)), Error);
}

/// The choice from the best tokens alone, or −1 if they do not determine it.
int32_t best_of(const Sampler& sampler, const std::vector<double>& logits) {
  const Tensor row = at::tensor(at::ArrayRef<double>(logits), at::kDouble).unsqueeze(0);
  const ops::TopScores top = ops::top_scores(row, sampler.deciding(), 0, true);
  return sampler.best_of(top.ids, top.scores).value_or(-1);
}

TEST(Sampler, FindsTheGreedyChoiceAmongTheBestTokens) {
  SamplingOptions options;
  options.temperature = 0;
  const Sampler sampler(options, {2, 0});
  EXPECT_EQ(sampler.deciding(), 4);
  Random random(1, "rows");
  int64_t decided = 0;
  constexpr int64_t kRows = 200;
  for (int64_t i = 0; i < kRows; ++i) {
    std::vector<double> logits(9);
    for (double& logit : logits) logit = random.normal();
    if (random.below(3) == 0) logits[random.below(9)] = -kInfinity;
    if (random.below(3) == 0) logits[random.below(9)] = logits[random.below(9)];
    const int32_t found = best_of(sampler, logits);
    if (found < 0) continue;
    EXPECT_EQ(found, sampler.draw(logits, {}, 0, 0));
    ++decided;
  }
  EXPECT_GT(decided, kRows / 2);
}

TEST(Sampler, LeavesTiesAndBrokenRowsToTheWholeRow) {
  SamplingOptions options;
  options.temperature = 0;
  const Sampler free(options);
  EXPECT_EQ(best_of(free, {1, 3, 2}), 1);
  EXPECT_EQ(best_of(free, {1, 3, 3}), -1);
  EXPECT_EQ(best_of(free, {1, kNaN, 3}), -1);
  EXPECT_EQ(best_of(free, {1, kInfinity, 3}), -1);
  EXPECT_EQ(best_of(free, {-kInfinity, -kInfinity}), -1);
  const Sampler hindered(options, {1});
  EXPECT_EQ(best_of(hindered, {1, 3, 2}), 2);
  EXPECT_EQ(best_of(hindered, {-kInfinity, 3}), -1);
}

TEST(Sampler, NeedsAllLogitsUnlessItIsGreedy) {
  SamplingOptions options;
  EXPECT_EQ(Sampler(options).deciding(), 0);
  options.temperature = 0;
  EXPECT_EQ(Sampler(options).deciding(), 2);
  options.repetition_penalty = 1.1;
  EXPECT_EQ(Sampler(options).deciding(), 0);
  options.repetition_penalty = 1;
  EXPECT_EQ(Sampler(options, std::vector<int32_t>(300, 1)).deciding(), 0);  // as with a padded vocabulary
}

}  // namespace
}  // namespace plumb
