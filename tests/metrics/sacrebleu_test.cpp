// Scores, intervals and p-values compared with sacreBLEU's: a file that scripts/golden/scores.py wrote and, if a Python
// with sacreBLEU is available, other sentences. $PLUMB_PYTHON names that Python; the default is python3.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "plumb/base/json.h"
#include "plumb/metrics/bleu.h"
#include "plumb/metrics/chrf.h"
#include "plumb/metrics/resampling.h"
#include "support/paths.h"
#include "support/process.h"

namespace plumb {
namespace {

constexpr double kScoreTolerance = 1e-9;

BleuOptions bleu_options_of(const Json& json) {
  BleuOptions options;
  options.tokenizer = json.value("tokenizer", options.tokenizer);
  options.lowercase = json.value("lowercase", false);
  options.smoothing = json.value("smoothing", options.smoothing);
  if (json.contains("smoothing_value")) options.smoothing_value = json.at("smoothing_value").get<double>();
  options.order = json.value("order", options.order);
  options.effective_order = json.value("effective_order", false);
  return options;
}

CorpusMetric metric_of(const std::string& name, const Json& json) {
  if (name == "bleu") return bleu_metric(bleu_options_of(json));
  const ChrfOptions defaults;
  return chrf_metric({.character_order = json.value("character_order", defaults.character_order),
                      .word_order = json.value("word_order", defaults.word_order),
                      .beta = json.value("beta", defaults.beta),
                      .lowercase = json.value("lowercase", false),
                      .whitespace = json.value("whitespace", false),
                      .epsilon_smoothing = json.value("epsilon_smoothing", false)});
}

using Sentences = std::vector<std::string>;

std::vector<Sentences> references_of(const Json& corpus, size_t count) {
  auto references = corpus.at("references").get<std::vector<Sentences>>();
  references.resize(count);
  return references;
}

void expect_parts(const Json& expected, const std::string& metric, const Json& options,
                  const std::vector<int64_t>& counts) {
  if (metric == "bleu") {
    const BleuScore score = bleu_of_counts(counts, bleu_options_of(options));
    EXPECT_NEAR(score.brevity_penalty, expected.at("brevity_penalty").get<double>(), kScoreTolerance);
    EXPECT_EQ(score.system_length, expected.at("system_length").get<int64_t>());
    EXPECT_EQ(score.reference_length, expected.at("reference_length").get<int64_t>());
    const auto precisions = expected.at("precisions").get<std::vector<double>>();
    ASSERT_EQ(score.precisions.size(), precisions.size());
    for (size_t n = 0; n < precisions.size(); ++n) EXPECT_NEAR(score.precisions[n], precisions[n], kScoreTolerance);
  }
}

/// All cases of all corpora; returns how many scores were compared.
int expect_scores(const Json& golden) {
  int compared = 0;
  for (const Json& corpus : golden.at("corpora")) {
    const auto systems = corpus.at("systems").get<std::vector<Sentences>>();
    for (const Json& expected : corpus.at("cases")) {
      SCOPED_TRACE(fmt::format("{} {} references: {}", expected.at("metric").get<std::string>(),
                               expected.at("options").dump(), expected.at("references").dump()));
      const auto name = expected.at("metric").get<std::string>();
      const CorpusMetric metric = metric_of(name, expected.at("options"));
      EXPECT_EQ(metric.name, expected.at("name").get<std::string>());
      const std::vector<Sentences> references = references_of(corpus, expected.at("references").get<size_t>());
      const std::string signature = metric_signature(metric, references.size());
      EXPECT_EQ(signature.find(expected.at("signature").get<std::string>() + '|'), 0U) << signature;
      for (size_t i = 0; i < systems.size(); ++i) {
        SCOPED_TRACE(fmt::format("system {}", i));
        const Json& of_system = expected.at("systems").at(i);
        const SentenceCounts counts = count_sentences(metric, systems[i], references);
        EXPECT_NEAR(metric.score(counts.sum()), of_system.at("score").get<double>(), kScoreTolerance);
        expect_parts(of_system, name, expected.at("options"), counts.sum());
        const std::vector<double> scores = sentence_scores(metric, counts);
        EXPECT_NEAR(std::accumulate(scores.begin(), scores.end(), 0.0), of_system.at("sentences").get<double>(),
                    kScoreTolerance * static_cast<double>(scores.size()));
        const auto last = of_system.at("last_sentences").get<std::vector<double>>();
        for (size_t k = 0; k < last.size(); ++k) {
          EXPECT_NEAR(scores[scores.size() - last.size() + k], last[k], kScoreTolerance);
        }
        ++compared;
      }
    }
  }
  return compared;
}

/// Five standard errors of the difference of two p-values, estimated from these numbers of samples.
double p_tolerance(double p, double samples, double other_samples) {
  const double share = std::min(0.5, std::max(p, 1 / samples));
  return 5 * std::sqrt(share * (1 - share) * (1 / samples + 1 / other_samples)) + 2 / std::min(samples, other_samples);
}

std::vector<SentenceCounts> counts_of_systems(const CorpusMetric& metric, const Json& corpus) {
  std::vector<SentenceCounts> counts;
  for (const Json& system : corpus.at("systems")) {
    counts.push_back(count_sentences(metric, system.get<Sentences>(), references_of(corpus, 1)));
  }
  return counts;
}

/// p-values counted with ties agree; without ties, as sacreBLEU publishes them, they are at most as large.
void expect_p_value(double found, const Json& expected, double samples, double other_samples) {
  const auto with_ties = expected.at("p_value_with_ties").get<double>();
  const double tolerance = p_tolerance(with_ties, samples, other_samples);
  EXPECT_NEAR(found, with_ties, tolerance);
  EXPECT_LE(expected.at("p_value").get<double>(), found + tolerance);
}

void expect_bootstrap(const Json& golden) {
  constexpr int64_t kSamples = 10000;
  for (const Json& expected : golden.at("bootstrap")) {
    SCOPED_TRACE(expected.at("metric").get<std::string>());
    const CorpusMetric metric = metric_of(expected.at("metric").get<std::string>(), Json::object());
    const std::vector<SentenceCounts> counts = counts_of_systems(metric, golden.at("corpora").at(0));
    const auto scores = bootstrap_scores(metric, counts, {.samples = kSamples});
    const auto samples = expected.at("samples").get<double>();
    const double error = std::sqrt(1.0 / kSamples + 1 / samples);
    for (size_t i = 0; i < counts.size(); ++i) {
      SCOPED_TRACE(fmt::format("system {}", i));
      const Json& of_system = expected.at("systems").at(i);
      const SampleInterval interval = interval_of_samples(scores[i]);
      const auto half_width = of_system.at("half_width").get<double>();
      const double deviation = half_width / 1.96;
      EXPECT_NEAR(interval.mean, of_system.at("mean").get<double>(), 5 * deviation * error);
      // The standard error of half the distance between these two quantiles is about 1.9 deviations / √samples.
      EXPECT_NEAR(interval.half_width(), half_width, 5 * 1.9 * deviation * error);
      if (i == 0) continue;
      const double difference = metric.score(counts[i].sum()) - metric.score(counts[0].sum());
      expect_p_value(bootstrap_p_value(scores[0], scores[i], difference), of_system, kSamples, samples);
    }
  }
}

void expect_randomization(const Json& golden) {
  constexpr int64_t kTrials = 20000;
  for (const Json& expected : golden.at("randomization")) {
    SCOPED_TRACE(expected.at("metric").get<std::string>());
    const CorpusMetric metric = metric_of(expected.at("metric").get<std::string>(), Json::object());
    const std::vector<SentenceCounts> counts = counts_of_systems(metric, golden.at("corpora").at(0));
    for (size_t i = 1; i < counts.size(); ++i) {
      SCOPED_TRACE(fmt::format("system {}", i));
      expect_p_value(randomization_p_value(metric, counts[0], counts[i], {.samples = kTrials}),
                     expected.at("systems").at(i), kTrials, expected.at("samples").get<double>());
    }
  }
}

Json golden_scores() { return read_json(test::source_directory() / "tests" / "golden" / "scores.json"); }

TEST(Sacrebleu, GivesTheSameScores) { EXPECT_GT(expect_scores(golden_scores()), 150); }
TEST(Sacrebleu, GivesTheSameIntervalsAndBootstrapPValues) { expect_bootstrap(golden_scores()); }
TEST(Sacrebleu, GivesTheSameRandomizationPValues) { expect_randomization(golden_scores()); }

TEST(Sacrebleu, GivesTheSameForOtherSentences) {
  const char* named = std::getenv("PLUMB_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  const std::string check = "import sacrebleu; assert sacrebleu.__version__.startswith('2.')";
  if (test::Process(python, {"-c", check}).wait().status != 0) {
    GTEST_SKIP() << python << " has no sacreBLEU 2; name a Python that has it with PLUMB_PYTHON";
  }
  const test::TemporaryDirectory directory;
  const std::string output = (directory / "scores.json").string();
  const std::string script = (test::source_directory() / "scripts" / "golden" / "scores.py").string();
  const test::Finished finished =
      test::Process(python, {script, "--sentences", "100", "--seed", "2", "--output", output}).wait();
  ASSERT_EQ(finished.status, 0) << finished.errors;
  const Json golden = read_json(output);
  EXPECT_GT(expect_scores(golden), 150);
  expect_bootstrap(golden);
  expect_randomization(golden);
}

}  // namespace
}  // namespace plumb
