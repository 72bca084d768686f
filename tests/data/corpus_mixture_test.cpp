#include "plumb/data/corpus_mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plumb/base/error.h"
#include "support/errors.h"

namespace plumb {
namespace {

std::string mixture_error(std::vector<WeightedCorpus> corpora, double temperature) {
  return test::message_of([&] { const CorpusMixture mixture(std::move(corpora), temperature, 1); });
}

/// The examples of an epoch.
std::vector<int64_t> epoch_of(const CorpusMixture& mixture, int64_t epoch) {
  std::vector<int64_t> examples;
  for (int64_t draw = 0; draw < mixture.size(); ++draw) examples.push_back(mixture.example(epoch, draw));
  return examples;
}

TEST(CorpusProbabilities, AreWeightTimesSizeToThePowerOfOneOverTheTemperature) {
  const std::vector<WeightedCorpus> corpora = {{"a", 1000}, {"b", 100, 2}, {"c", 10, 0.5}};
  for (const double temperature : {0.5, 1.0, 2.0, 5.0, 100.0}) {
    std::vector<double> expected;
    for (const WeightedCorpus& corpus : corpora)
      expected.push_back(corpus.weight * std::exp(std::log(static_cast<double>(corpus.size)) / temperature));
    const double sum = expected[0] + expected[1] + expected[2];
    const std::vector<double> found = corpus_probabilities(corpora, temperature);
    ASSERT_EQ(found.size(), 3U);
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(found[c], expected[c] / sum, 1e-14) << temperature;
  }
  // T = 5, as in multilingual models: 1000^(1/5), 100^(1/5) and 10^(1/5) are 3.98107, 2.51189 and 1.58489.
  const auto five = corpus_probabilities(std::vector<WeightedCorpus>{{"a", 1000}, {"b", 100}, {"c", 10}}, 5);
  EXPECT_NEAR(five[0], 3.98107 / 8.07785, 1e-5);
  EXPECT_NEAR(five[1], 2.51189 / 8.07785, 1e-5);
  EXPECT_NEAR(five[2], 1.58489 / 8.07785, 1e-5);
}

TEST(CorpusMixture, SharesAreTheProbabilitiesOfAllExamplesRounded) {
  const auto shares = [](std::vector<WeightedCorpus> corpora, double temperature) {
    return CorpusMixture(std::move(corpora), temperature, 1).shares();
  };
  using Shares = std::vector<int64_t>;
  EXPECT_EQ(shares({{"a", 300}, {"b", 100}}, 1), (Shares{300, 100}));
  EXPECT_EQ(shares({{"a", 300}, {"b", 100, 3}}, 1), (Shares{200, 200}));
  EXPECT_EQ(shares({{"a", 900}, {"b", 100}}, 2), (Shares{750, 250}));         // 30 : 10 of 1,000
  EXPECT_EQ(shares({{"a", 5}, {"b", 3}, {"c", 2}}, 1e9), (Shares{4, 3, 3}));  // 3 1/3 each
  EXPECT_EQ(shares({{"a", 8}, {"b", 1, 4}}, 1), (Shares{6, 3}));
  EXPECT_EQ(shares({{"a", 100}, {"b", 100, 0.01}}, 1), (Shares{198, 2}));  // 198.02 and 1.98
  EXPECT_EQ(shares({{"only", 7, 3}}, 5), (Shares{7}));
  EXPECT_TRUE(CorpusMixture({{"a", 300, 2}, {"b", 100, 2}, {"c", 7, 2}}, 1, 1).every_example_once());
  EXPECT_FALSE(CorpusMixture({{"a", 300}, {"b", 100, 1.1}}, 1, 1).every_example_once());
}

// Per epoch, 4 draws from 10 examples, 28 from 30 and 11 from 3.
TEST(CorpusMixture, EveryCorpusIsGoneThroughEvenlyOverTheEpochs) {
  const std::vector<WeightedCorpus> corpora = {{"a", 10, 0.4}, {"b", 30, 28.0 / 30}, {"c", 3, 11.0 / 3}};
  const CorpusMixture mixture(corpora, 1, 9);
  ASSERT_EQ(mixture.shares(), (std::vector<int64_t>{4, 28, 11}));
  ASSERT_EQ(mixture.size(), 43);
  std::vector<int64_t> seen(43, 0);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<int64_t> examples = epoch_of(mixture, epoch);
    for (size_t draw = 0; draw < examples.size(); ++draw) {
      const int64_t example = examples[draw];
      const int64_t begin = draw < 4 ? 0 : draw < 32 ? 10 : 40, end = draw < 4 ? 10 : draw < 32 ? 40 : 43;
      ASSERT_GE(example, begin);
      ASSERT_LT(example, end);
      // None is drawn again before all others of its corpus have been drawn as often.
      EXPECT_EQ(seen[static_cast<size_t>(example)], *std::min_element(seen.begin() + begin, seen.begin() + end))
          << "epoch " << epoch << ", draw " << draw;
      ++seen[static_cast<size_t>(example)];
    }
  }
  const auto drawn = [&](int64_t begin, int64_t end) {
    return std::accumulate(seen.begin() + begin, seen.begin() + end, int64_t{0});
  };
  EXPECT_EQ(drawn(0, 10), 20 * 4);
  EXPECT_EQ(drawn(10, 40), 20 * 28);
  EXPECT_EQ(drawn(40, 43), 20 * 11);
}

TEST(CorpusMixture, AnEpochIsAFunctionOfSeedAndNumber) {
  const std::vector<WeightedCorpus> corpora = {{"a", 200}, {"b", 50}};
  const CorpusMixture mixture(corpora, 3, 5), same(corpora, 3, 5), other(corpora, 3, 6);
  const std::vector<int64_t> third = epoch_of(mixture, 3);
  EXPECT_EQ(epoch_of(same, 3), third);
  EXPECT_NE(epoch_of(other, 3), third);
  EXPECT_NE(epoch_of(mixture, 4), third);
  // The order differs from pass to pass.
  const CorpusMixture twice({{"a", 50}, {"b", 50, 1e-2}}, 1, 5);  // 99 draws from 50 examples
  std::vector<int64_t> first_pass, second_pass;
  for (int64_t draw = 0; draw < 49; ++draw) {
    first_pass.push_back(twice.example(0, draw));
    second_pass.push_back(twice.example(0, 50 + draw));
  }
  EXPECT_EQ(twice.shares()[0], 99);
  EXPECT_NE(first_pass, second_pass);
}

TEST(CorpusMixture, WhatCannotBeDrawnFromIsAnError) {
  EXPECT_EQ(mixture_error({}, 1), "there is no corpus to draw from");
  EXPECT_EQ(mixture_error({{"a", 3}, {"b", 0}}, 1), "the corpus 'b' is empty");
  EXPECT_EQ(mixture_error({{"a", 3, 0}}, 1), "the weight of the corpus 'a' must be above 0, not 0");
  EXPECT_EQ(mixture_error({{"a", 3, -1}}, 1), "the weight of the corpus 'a' must be above 0, not -1");
  EXPECT_EQ(mixture_error({{"a", 3}}, 0), "the temperature of corpora must be above 0, not 0");
  EXPECT_EQ(mixture_error({{"a", 3}}, -2), "the temperature of corpora must be above 0, not -2");
  for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(mixture_error({{"a", 3}}, value), "accepted");
    EXPECT_NE(mixture_error({{"a", 3, value}}, 1), "accepted");
  }
  EXPECT_EQ(mixture_error({{"a", 1000}, {"b", 1000, 1e-5}}, 1),
            "the corpus 'b' has a share of 1e-05 in an epoch of 2000 examples: none of it is drawn");
  EXPECT_NE(mixture_error({{"a", 1000}, {"b", 10}}, 0.005), "accepted");  // 1000^200 is infinite
}

}  // namespace
}  // namespace plumb
