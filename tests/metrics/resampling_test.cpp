// Resampling compared with all possible samples of small corpora, and with nominal error rates.
#include "plumb/metrics/resampling.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <map>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/metrics/bleu.h"

namespace plumb {
namespace {

// The score is a ratio of sums.
CorpusMetric ratio_of_sums() {
  return {.name = "ratio", .width = 2, .score = [](std::span<const int64_t> counts) {
            return 100.0 * static_cast<double>(counts[0]) / static_cast<double>(counts[1]);
          }};
}

SentenceCounts counts_of(const std::vector<int64_t>& firsts, const std::vector<int64_t>& seconds) {
  SentenceCounts counts(firsts.size(), 2);
  for (size_t i = 0; i < firsts.size(); ++i) {
    counts[i][0] = firsts[i];
    counts[i][1] = seconds[i];
  }
  return counts;
}

double score_of(const SentenceCounts& counts) { return ratio_of_sums().score(counts.sum()); }

// Five standard errors, plus two samples, of a proportion estimated from this number of samples.
double share_tolerance(double share, int64_t samples) {
  return 5 * std::sqrt(share * (1 - share) / static_cast<double>(samples)) + 2.0 / static_cast<double>(samples);
}

TEST(Interval, IsBetweenTheQuantiles) {
  std::vector<double> samples;
  for (int i = 999; i >= 0; --i) samples.push_back(i);
  const SampleInterval interval = interval_of_samples(samples);
  EXPECT_EQ(interval.low, 25);
  EXPECT_EQ(interval.high, 974);
  EXPECT_EQ(interval.mean, 499.5);
  EXPECT_EQ(interval.half_width(), 474.5);
  EXPECT_EQ(interval_of_samples({3}).low, 3);
  EXPECT_THROW(interval_of_samples({}), Error);
}

TEST(Bootstrap, DrawsEverySampleWithItsProbability) {
  // Three sentences: 27 equally likely samples. Their scores, with multiplicities, compared with the shares drawn.
  const SentenceCounts counts = counts_of({1, 2, 4}, {2, 3, 7});
  std::map<double, double> expected;
  for (int sample = 0; sample < 27; ++sample) {
    SentenceCounts drawn(3, 2);
    for (size_t i = 0, rest = static_cast<size_t>(sample); i < 3; ++i, rest /= 3) {
      for (size_t k = 0; k < 2; ++k) drawn[i][k] = counts[rest % 3][k];
    }
    expected[score_of(drawn)] += 1 / 27.0;
  }
  constexpr int64_t kSamples = 40000;
  std::map<double, double> found;
  const auto scores = bootstrap_scores(ratio_of_sums(), {counts}, {.samples = kSamples});
  for (const double score : scores.front()) found[score] += 1.0 / kSamples;
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [score, share] : expected) EXPECT_NEAR(found[score], share, share_tolerance(share, kSamples));
}

TEST(Bootstrap, CoversTheTrueScoreInNineteenOfTwentyCorpora) {
  // The numerators are uniform in 0 … 8, the denominators 8: the score of the whole language is 50.
  constexpr int kCorpora = 400;
  int covered = 0;
  Random random(1, "corpora");
  for (int corpus = 0; corpus < kCorpora; ++corpus) {
    std::vector<int64_t> firsts(100);
    for (int64_t& first : firsts) first = static_cast<int64_t>(random.below(9));
    const SentenceCounts counts = counts_of(firsts, std::vector<int64_t>(100, 8));
    const SampleInterval interval =
        interval_of_samples(bootstrap_scores(ratio_of_sums(), {counts}, {.samples = 400}).front());
    covered += interval.low <= 50 && 50 <= interval.high;
  }
  EXPECT_NEAR(covered / double{kCorpora}, 0.95, share_tolerance(0.95, kCorpora));
}

TEST(Bootstrap, DrawsTheSameSentencesForAllSystemsSeedsAndThreads) {
  const SentenceCounts first = counts_of({1, 2, 4, 3}, {5, 5, 5, 5});
  const SentenceCounts second = counts_of({2, 3, 5, 4}, {5, 5, 5, 5});  // one more in each
  const auto scores = bootstrap_scores(ratio_of_sums(), {first, second}, {.samples = 100, .seed = 3});
  for (size_t i = 0; i < 100; ++i) EXPECT_NEAR(scores[1][i] - scores[0][i], 20, 1e-9);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  EXPECT_EQ(bootstrap_scores(ratio_of_sums(), {first}, {.samples = 100, .seed = 3}).front(), scores[0]);
  omp_set_num_threads(threads);
  EXPECT_NE(bootstrap_scores(ratio_of_sums(), {first}, {.samples = 100, .seed = 4}).front(), scores[0]);
}

TEST(Bootstrap, RejectsWhatCannotBeResampled) {
  const SentenceCounts one = counts_of({1}, {2});
  const SentenceCounts two = counts_of({1, 2}, {2, 3});
  EXPECT_THROW(bootstrap_scores(ratio_of_sums(), {one}), Error);
  EXPECT_THROW(bootstrap_scores(ratio_of_sums(), {two, one}), Error);
  EXPECT_THROW(bootstrap_scores(ratio_of_sums(), {two}, {.samples = 0}), Error);
}

TEST(BootstrapPValue, IsTheShareOfCenteredDifferences) {
  // Absolute differences 1 2 3 6, mean 3: only 6 exceeds the mean by 3.
  EXPECT_EQ(bootstrap_p_value({0, 0, 0, 0}, {1, -2, 3, 6}, 3), 2 / 5.0);
  EXPECT_EQ(bootstrap_p_value({0, 0, 0, 0}, {1, -2, 3, 6}, -3), 2 / 5.0);
  EXPECT_EQ(bootstrap_p_value({0, 0, 0, 0}, {1, -2, 3, 6}, 3.1), 1 / 5.0);
  EXPECT_EQ(bootstrap_p_value({4, 5}, {4, 5}, 0), 1);  // equal systems
  EXPECT_THROW(bootstrap_p_value({1}, {1, 2}, 0), Error);
}

// p over all 2ⁿ ways to swap sentences.
double exact_randomization(const SentenceCounts& baseline, const SentenceCounts& system) {
  const double difference = std::abs(score_of(system) - score_of(baseline));
  const size_t n = baseline.sentences();
  int64_t as_extreme = 0;
  for (size_t swaps = 0; swaps < size_t{1} << n; ++swaps) {
    SentenceCounts a = baseline;
    SentenceCounts b = system;
    for (size_t i = 0; i < n; ++i) {
      if ((swaps >> i & 1U) == 0) continue;
      for (size_t k = 0; k < 2; ++k) std::swap(a[i][k], b[i][k]);
    }
    as_extreme += std::abs(score_of(a) - score_of(b)) >= difference - 1e-9;
  }
  return static_cast<double>(as_extreme) / static_cast<double>(size_t{1} << n);
}

TEST(RandomizationPValue, IsThatOfAllSwaps) {
  constexpr int64_t kTrials = 40000;
  Random random(2, "systems");
  for (const size_t sentences : {1, 2, 5, 12}) {
    for (int repetition = 0; repetition < 4; ++repetition) {
      std::vector<std::vector<int64_t>> values(3, std::vector<int64_t>(sentences));
      for (size_t i = 0; i < sentences; ++i) {
        values[0][i] = static_cast<int64_t>(random.below(6));  // ties are frequent
        values[1][i] = static_cast<int64_t>(random.below(8));
        values[2][i] = 7 + static_cast<int64_t>(repetition % 2 * random.below(5));
      }
      const SentenceCounts baseline = counts_of(values[0], values[2]);
      const SentenceCounts system = counts_of(values[1], values[2]);
      const double expected = exact_randomization(baseline, system);
      EXPECT_NEAR(randomization_p_value(ratio_of_sums(), baseline, system, {.samples = kTrials}), expected,
                  share_tolerance(expected, kTrials))
          << sentences << " sentences, repetition " << repetition;
    }
  }
}

TEST(RandomizationPValue, OfEqualSystemsAndOfOneSentenceIsOne) {
  const SentenceCounts counts = counts_of({1, 2, 4}, {2, 3, 7});
  EXPECT_EQ(randomization_p_value(ratio_of_sums(), counts, counts), 1);
  EXPECT_EQ(randomization_p_value(ratio_of_sums(), counts_of({1}, {4}), counts_of({3}, {4})), 1);
  EXPECT_THROW(randomization_p_value(ratio_of_sums(), counts, counts_of({1}, {4})), Error);
}

// How often two systems of equal quality are called different at 5%. Randomization and the interval have this error
// rate; the bootstrap's p-value, as sacreBLEU defines it, has about twice that.
TEST(Resampling, CallsEquallyGoodSystemsDifferentAsOftenAsDocumented) {
  constexpr int kCorpora = 400;
  int by_randomization = 0;
  int by_bootstrap = 0;
  int by_interval = 0;
  Random random(3, "corpora");
  for (int corpus = 0; corpus < kCorpora; ++corpus) {
    std::vector<std::vector<int64_t>> values(2, std::vector<int64_t>(60));
    for (std::vector<int64_t>& system : values) {
      for (int64_t& value : system) value = static_cast<int64_t>(random.below(40));
    }
    const std::vector<int64_t> lengths(60, 40);
    const SentenceCounts first = counts_of(values[0], lengths);
    const SentenceCounts second = counts_of(values[1], lengths);
    by_randomization += randomization_p_value(ratio_of_sums(), first, second, {.samples = 500}) <= 0.05;
    const auto scores = bootstrap_scores(ratio_of_sums(), {first, second}, {.samples = 500});
    by_bootstrap += bootstrap_p_value(scores[0], scores[1], score_of(second) - score_of(first)) <= 0.05;
    std::vector<double> differences;
    for (size_t i = 0; i < scores[0].size(); ++i) differences.push_back(scores[1][i] - scores[0][i]);
    const SampleInterval interval = interval_of_samples(differences);
    by_interval += interval.low > 0 || interval.high < 0;
  }
  EXPECT_NEAR(by_randomization / double{kCorpora}, 0.05, share_tolerance(0.05, kCorpora));
  EXPECT_NEAR(by_interval / double{kCorpora}, 0.05, share_tolerance(0.05, kCorpora));
  EXPECT_NEAR(by_bootstrap / double{kCorpora}, 0.11, share_tolerance(0.11, kCorpora) / 2);
}

TEST(BleuWithInterval, IsBleuAndTheIntervalOfItsResamples) {
  std::vector<std::string> hypotheses;
  std::vector<std::string> references;
  Random random(4, "text");
  for (int i = 0; i < 60; ++i) {
    std::string hypothesis;
    std::string reference;
    for (int word = 0; word < 12; ++word) {
      const std::string right = std::string(1, static_cast<char>('a' + random.below(20))) + ' ';
      reference += right;
      hypothesis += random.below(4) == 0 ? "x " : right;
    }
    hypotheses.push_back(hypothesis);
    references.push_back(reference);
  }
  const BleuWithInterval found = bleu_with_interval(hypotheses, {references}, {}, {.samples = 300, .seed = 5});
  EXPECT_NEAR(found.score, corpus_bleu(hypotheses, {references}).score, 1e-12);
  EXPECT_EQ(found.signature, "nrefs:1|bs:300|seed:5|case:mixed|eff:no|tok:13a|smooth:exp|version:plumb." PLUMB_VERSION);
  // BLEU of resampled texts, with other random numbers.
  std::vector<double> scores;
  for (int sample = 0; sample < 300; ++sample) {
    std::vector<std::string> drawn_hypotheses;
    std::vector<std::string> drawn_references;
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      const size_t drawn = random.below(hypotheses.size());
      drawn_hypotheses.push_back(hypotheses[drawn]);
      drawn_references.push_back(references[drawn]);
    }
    scores.push_back(corpus_bleu(drawn_hypotheses, {drawn_references}).score);
  }
  const SampleInterval expected = interval_of_samples(scores);
  const double deviation = expected.half_width() / 1.96;
  EXPECT_NEAR(found.interval.mean, expected.mean, deviation * 5 * std::sqrt(2 / 300.0));
  // A quantile's standard error is about 2.7 deviations / √samples.
  EXPECT_NEAR(found.interval.low, expected.low, deviation * 5 * 2.7 * std::sqrt(2 / 300.0));
  EXPECT_NEAR(found.interval.high, expected.high, deviation * 5 * 2.7 * std::sqrt(2 / 300.0));
  EXPECT_LT(found.interval.low, found.score);
  EXPECT_GT(found.interval.high, found.score);
}

}  // namespace
}  // namespace plumb
