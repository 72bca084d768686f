// BLEU in a study: its interval over sentences with one seed, over seeds with several.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "plumb/data/directory.h"
#include "plumb/decode/translate.h"
#include "plumb/metrics/bleu.h"
#include "plumb/run/directory.h"
#include "plumb/study/study.h"
#include "study/parts.h"
#include "support/contains.h"
#include "support/entries.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

class BleuStudy : public ::testing::Test {
 protected:
  BleuStudy() {
    test::make_copy_task(folder_ / "data");
    const RunConfig run = test::copy_run(folder_ / "data");
    config_.study.schemes = {"pre-ln"};
    config_.study.seed = 4;
    config_.data.directory = (folder_ / "data").string();
    config_.model = run.model;
    config_.train = run.train;
    config_.train.steps = 150;  // enough to copy some of it
    config_.train.validate_every = 50;
    config_.train.checkpoint_every = 150;
    set_seeds(1);
  }

  void set_seeds(int64_t seeds) {
    config_.parts = test::parts(fmt::format(R"(
[training]
warm_ups = [5]
learning_rates = [1e-2]
layers = [1]
seeds = {}
bleu_pairs = 16
bleu_split = "valid"
)",
                                            seeds));
  }

  test::TemporaryDirectory folder_;
  StudyConfig config_;
};

TEST_F(BleuStudy, OneSeedHasTheIntervalOverSentences) {
  const Json results = run_study(config_, folder_ / "out");
  // The run's translations, made again; resampled with another generator and scored as texts.
  const DataDirectory data = DataDirectory::open(folder_ / "data");
  std::vector<std::string> source = data.raw_source("valid"), reference = data.raw_target("valid");
  source.resize(16);
  reference.resize(16);
  const std::filesystem::path run = *std::filesystem::directory_iterator(folder_ / "out" / "runs");
  const std::unique_ptr<Model> model = load_model(run);
  const std::vector<std::string> hypotheses =
      translate(translator_of(*model), data.source_tokenizer(), data.target_tokenizer(), source, {.beam = 1});
  const double score = corpus_bleu(hypotheses, {reference}).score;
  ASSERT_GT(score, 10);
  ASSERT_LT(score, 99);
  constexpr size_t kDraws = 1000;
  std::mt19937 generator(5);
  std::vector<double> scores;
  for (size_t i = 0; i < kDraws; ++i) {
    std::vector<std::string> drawn, drawn_reference;
    for (size_t k = 0; k < 16; ++k) {
      const size_t which = std::uniform_int_distribution<size_t>(0, 15)(generator);
      drawn.push_back(hypotheses[which]);
      drawn_reference.push_back(reference[which]);
    }
    scores.push_back(corpus_bleu(drawn, {drawn_reference}).score);
  }
  std::sort(scores.begin(), scores.end());
  // The share of draws beyond each end of the interval is 2.5%, with a standard error of 0.5 percentage points for each
  // of the two samples of 1,000: within four of their joint standard errors.
  const auto below = [&](double value) {
    return static_cast<double>(std::lower_bound(scores.begin(), scores.end(), value) - scores.begin()) / kDraws;
  };
  const auto not_above = [&](double value) {
    return static_cast<double>(std::upper_bound(scores.begin(), scores.end(), value) - scores.begin()) / kDraws;
  };
  const Json table = test::entry(results["tables"], "id", "bleu");
  ASSERT_EQ(table["rows"].size(), 1U);
  const Json& row = table["rows"][0];
  EXPECT_EQ(row[5], 4);  // seed
  EXPECT_NEAR(row[6].get<double>(), score, 1e-9);
  const double low = row[7], high = row[8];
  EXPECT_LE(below(low), 0.025 + 0.028);
  EXPECT_GE(not_above(low), 0.025 - 0.028);
  EXPECT_LE(below(high), 0.975 + 0.028);
  EXPECT_GE(not_above(high), 0.975 - 0.028);
  EXPECT_LT(low, score);
  EXPECT_GT(high, score);
  EXPECT_EQ(row[9], 16);
  const Json figure = test::entry(results["figures"], "id", "bleu");
  const Json& series = figure["series"][0];
  EXPECT_NEAR(series["y"][0].get<double>(), score, 1e-9);
  EXPECT_EQ(series["low"][0], low);
  EXPECT_EQ(series["high"][0], high);
  EXPECT_CONTAINS(figure["caption"].get<std::string>(), "over sentences");
}

TEST_F(BleuStudy, SeveralSeedsHaveTheIntervalOverSeeds) {
  set_seeds(2);
  const Json results = run_study(config_, folder_ / "out");
  const Json rows = test::entry(results["tables"], "id", "bleu")["rows"];
  ASSERT_EQ(rows.size(), 2U);
  const double a = rows[0][6], b = rows[1][6];
  EXPECT_NE(a, b);
  const Json figure = test::entry(results["figures"], "id", "bleu");
  const Json& series = figure["series"][0];
  EXPECT_NEAR(series["y"][0].get<double>(), (a + b) / 2, 1e-9);
  // Student's t with one degree of freedom: 12.706.
  EXPECT_NEAR(series["high"][0].get<double>() - series["low"][0].get<double>(), 12.706205 * std::abs(a - b), 1e-4);
  EXPECT_LACKS(figure["caption"].get<std::string>(), "over sentences");
  EXPECT_CONTAINS(figure["caption"].get<std::string>(), "over 2 seeds");
}

TEST_F(BleuStudy, AReportTranslatesNothing) {
  const auto table = [](const Json& results) { return test::entry(results["tables"], "id", "bleu")["rows"]; };
  const auto translated = [&] {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "out" / "measurements")) {
      if (file.path().filename().string().starts_with("bleu-")) files.push_back(file.path());
    }
    return files;
  };
  const Json results = run_study(config_, folder_ / "out");
  ASSERT_EQ(translated().size(), 1U);
  std::filesystem::remove(translated().front());
  const Json report = report_study(folder_ / "out");
  EXPECT_TRUE(translated().empty());
  EXPECT_TRUE(report["tables"].empty()) << report["tables"];
  EXPECT_CONTAINS(report["summary"][0].get<std::string>(), "1 of 2 measurements are made; not reported yet: training");
  EXPECT_EQ(table(run_study(config_, folder_ / "out")), table(results));
}

TEST_F(BleuStudy, RunsThatDivergeHaveNone) {
  config_.train.divergence_factor = 1e-6;  // every run, after step 20
  const Json results = run_study(config_, folder_ / "out");
  const Json row = test::entry(results["tables"], "id", "bleu")["rows"][0];
  EXPECT_EQ(row[6], "diverged");
  EXPECT_TRUE(row[7].is_null() && row[8].is_null());
  const Json figure = test::entry(results["figures"], "id", "bleu");
  EXPECT_TRUE(figure["series"][0]["y"][0].is_null());
  EXPECT_CONTAINS(figure["caption"].get<std::string>(), "1 run diverged");
}

}  // namespace
}  // namespace plumb
