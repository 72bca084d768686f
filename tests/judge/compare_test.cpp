// Two models on the same items: p-values against statsmodels and SciPy.
#include "plumb/judge/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

// statsmodels.stats.contingency_tables.mcnemar(exact=True)
TEST(Compare, McNemarsTestIsExact) {
  EXPECT_NEAR(mcnemar_p_value(3, 12), 0.03515625, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(0, 5), 0.0625, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(10, 10), 1, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(70, 40), 0.005447429511444476, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(250, 310), 0.012590475149380293, 1e-10);
  EXPECT_EQ(mcnemar_p_value(0, 0), 1);
}

TaskScores sampled(const std::string& task, const std::string& metric, const ItemSamples& samples) {
  TaskScores one{.task = task, .metrics = {metric}, .terms = {{metric, samples}}};
  for (size_t i = 0; i < samples.size(); ++i) {
    one.items.push_back(std::to_string(i));
    one.hashes.emplace_back();
  }
  return one;
}

TaskScores scores(const std::string& task, const std::string& metric, const MetricTerms& terms) {
  ItemSamples samples;
  for (const std::vector<double>& item : terms) samples.push_back(MetricTerms{item});
  return sampled(task, metric, samples);
}

MetricTerms column(const std::vector<double>& values) {
  MetricTerms terms;
  for (const double value : values) terms.push_back({value});
  return terms;
}

ScoreDifference compared(const std::string& metric, const MetricTerms& first, const MetricTerms& second) {
  return compare_models({scores("t", metric, first)}, {scores("t", metric, second)}, {}, {.samples = 4000})
      .differences.at(0);
}

// scipy.stats.permutation_test(permutation_type='samples', n_resamples=inf), scipy.stats.bootstrap(method='percentile')
TEST(Compare, MeansByRandomization) {
  const ScoreDifference found = compared("f1", column({0.2, 0.5, 0.9, 0.4, 0.3, 0.8, 0.6, 0.1, 0.7, 0.55}),
                                         column({0.35, 0.5, 0.95, 0.6, 0.2, 0.9, 0.75, 0.3, 0.65, 0.7}));
  EXPECT_EQ(found.test, "randomization");
  EXPECT_NEAR(found.difference, 0.085, 1e-12);
  EXPECT_NEAR(found.p_value, 0.05078125, 4 * std::sqrt(0.05 * 0.95 / 40000));
  EXPECT_NEAR(found.low, 0.02, 0.006);
  EXPECT_NEAR(found.high, 0.145, 0.006);
}

TaskScores sampled_golden(const Json& model) {
  ItemSamples items;
  for (const Json& samples : model) {
    MetricTerms& item = items.emplace_back();
    for (const Json& sample : samples) item.push_back({sample.get<double>()});
  }
  return sampled("t", "acc", items);
}

// scipy.stats.hypergeom, bootstrap and permutation_test; statsmodels' errors clustered by item.
TEST(Compare, SeveralSamplesOfAnItem) {
  const Json golden = read_json(test::source_directory() / "tests" / "golden" / "repeated_samples.json");
  const std::vector<TaskScores> first = {sampled_golden(golden["first"])}, second = {sampled_golden(golden["second"])};
  constexpr int64_t kSamples = 4000;
  const std::vector<ScoreDifference> found = compare_models(first, second, {}, {.samples = kSamples}).differences;
  ASSERT_EQ(found.size(), golden["rows"].size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Json& row = golden["rows"][i];
    SCOPED_TRACE(row.dump());
    EXPECT_EQ(found[i].metric, row["metric"].get<std::string>());
    EXPECT_EQ(found[i].items, std::ssize(golden["first"]));
    EXPECT_EQ(found[i].samples, 4);
    EXPECT_NEAR(found[i].first, row["first"].get<double>(), 1e-12);
    EXPECT_NEAR(found[i].second, row["second"].get<double>(), 1e-12);
    EXPECT_EQ(found[i].test, "randomization");
    const double p = row["p_value"], low = row["low"], high = row["high"];
    EXPECT_NEAR(found[i].p_value, p, 5 * std::sqrt(p * (1 - p) / (10 * kSamples)));
    EXPECT_NEAR(found[i].low, low, 0.05 * (high - low));  // a quantile of 4,000 samples errs by 0.011 of the width
    EXPECT_NEAR(found[i].high, high, 0.05 * (high - low));
    EXPECT_EQ(found[i].larger_is_better, found[i].metric != "acc flip rate");
    EXPECT_EQ(found[i].sampling_error.has_value(), i == 0);
  }
  EXPECT_NEAR(found[0].standard_error.value(), golden["standard_error"].get<double>(), 1e-9);
  EXPECT_NEAR(found[0].sampling_error.value(), golden["sampling_error"].get<double>(), 1e-9);
  const ModelComparison of_two = compare_models(first, second, {}, {.samples = 10}, {2, 3});
  std::vector<std::string> metrics;
  for (const ScoreDifference& one : of_two.differences) metrics.push_back(one.metric);
  EXPECT_EQ(metrics,
            (std::vector<std::string>{"acc", "acc pass@2", "acc pass^2", "acc pass@3", "acc pass^3", "acc flip rate"}));
  EXPECT_CONTAINS(comparison_text(of_two),
                  "t, acc: 4 or more samples of an item; standard error 0.0345, by the samples");
  EXPECT_THROW(compare_models(first, second, {}, {.samples = 10}, {5}), UsageError);
}

TEST(Compare, ChancesThatAllAreRight) {
  EXPECT_NEAR(all_right(5, 3, 2), 0.3, 1e-15);
  EXPECT_NEAR(all_right(10, 9, 4), 0.6, 1e-15);
  EXPECT_EQ(all_right(5, 5, 5), 1);
  EXPECT_EQ(all_right(5, 2, 3), 0);
}

// Half of the items are easier for one of the models, but none is better: intervals by items cover 0. A percentile
// bootstrap of 60 items covers a little less than it says.
TEST(Compare, IntervalsAreThoseOfOtherItemsAndSamples) {
  constexpr int kTrials = 500, kItems = 60, kSamples = 5;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<uint64_t>(trial), "samples");
    ItemSamples first(kItems), second(kItems);
    for (int item = 0; item < kItems; ++item) {
      const double p = random.uniform();
      const double q = random.uniform() < 0.5 ? p : random.uniform();
      for (int sample = 0; sample < kSamples; ++sample) {
        first[static_cast<size_t>(item)].push_back({random.uniform() < p ? 1.0 : 0.0});
        second[static_cast<size_t>(item)].push_back({random.uniform() < q ? 1.0 : 0.0});
      }
    }
    const ScoreDifference found =
        compare_models({sampled("t", "my_error", first)}, {sampled("t", "my_error", second)}, {}, {.samples = 200})
            .differences.at(0);
    covered += found.low <= 0 && 0 <= found.high ? 1 : 0;
  }
  EXPECT_NEAR(covered, 0.93 * kTrials, 0.04 * kTrials);
}

TEST(Compare, ItemsWithoutANumberAreLeftOutAndNamed) {
  const double none = std::nan("");
  const ModelComparison found = compare_models({scores("t", "f1", column({0.2, none, 0.9, 0.5}))},
                                               {scores("t", "f1", column({0.3, 0.4, 0.8, HUGE_VAL}))}, {}, {});
  EXPECT_EQ(found.differences[0].items, 2);
  EXPECT_EQ(found.differences[0].left_out, 2);
  EXPECT_NEAR(found.differences[0].difference, 0, 1e-15);
  EXPECT_CONTAINS(comparison_text(found), "t, f1: items left out for lack of a finite number: 2");
  test::expect_error([&] { compared("f1", column({0.2, none}), column({none, 0.1})); }, "no item has a number of f1");
}

// All 256 ways to swap the items, in NumPy.
TEST(Compare, PerplexitiesOfSums) {
  const std::vector<double> words = {2, 3, 1, 4, 2, 3, 4, 2};
  const std::vector<double> before = {-3, -5, -2, -8, -4, -6, -7, -3};
  const std::vector<double> gained = {0.4, 0.1, -0.2, 0.9, 0.3, 0.2, 0.5, -0.1};
  MetricTerms first, second;
  for (size_t i = 0; i < words.size(); ++i) {
    first.push_back({before[i], words[i]});
    second.push_back({before[i] + gained[i], words[i]});
  }
  const ScoreDifference found = compared("word_perplexity", first, second);
  EXPECT_NEAR(found.first, 6.107538388042658, 1e-12);
  EXPECT_NEAR(found.second, 5.526329265592027, 1e-12);
  EXPECT_NEAR(found.p_value, 0.0859375, 4 * std::sqrt(0.086 * 0.914 / 40000));
  EXPECT_FALSE(found.larger_is_better);
  EXPECT_FALSE(found.items_needed);
}

// With as many items as are said to be needed, McNemar's test finds the difference in about 80 of 100 draws.
TEST(Compare, ItemsNeededFindTheDifference) {
  MetricTerms first, second;
  for (int i = 0; i < 100; ++i) {  // 12 that the second model alone gets right, 6 that the first does
    first.push_back({i < 6 || i >= 60 ? 1.0 : 0.0});
    second.push_back({i >= 6 && (i < 18 || i >= 60) ? 1.0 : 0.0});
  }
  const ScoreDifference found = compared("acc", first, second);
  EXPECT_EQ(found.test, "McNemar");
  EXPECT_EQ(found.only_first, 6);
  EXPECT_EQ(found.only_second, 12);
  ASSERT_TRUE(found.items_needed);
  constexpr int kTrials = 2000;
  int detected = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<uint64_t>(trial), "items");
    int64_t b = 0, c = 0;
    for (int64_t item = 0; item < *found.items_needed; ++item) {
      const double u = random.uniform();
      b += u < 0.06 ? 1 : 0;
      c += u >= 0.06 && u < 0.18 ? 1 : 0;
    }
    detected += mcnemar_p_value(b, c) <= 0.05 ? 1 : 0;
  }
  // The exact test is a little more careful than the formula.
  EXPECT_NEAR(detected, 0.78 * kTrials, 0.04 * kTrials);
}

TEST(Compare, TasksArePooledAndOthersNamed) {
  const std::vector<TaskScores> first = {scores("a", "acc", column({1, 0, 0, 0, 0, 0})),
                                         scores("b", "acc", column({0, 0, 0, 0})), scores("c", "acc", column({1}))};
  const std::vector<TaskScores> second = {scores("a", "acc", column({1, 1, 1, 1, 1, 1})),
                                          scores("b", "acc", column({1, 1, 1, 1}))};
  const ModelComparison found = compare_models(first, second, {}, {.samples = 100});
  ASSERT_EQ(found.differences.size(), 3U);
  EXPECT_EQ(found.differences[2].task, "all tasks");
  EXPECT_EQ(found.differences[2].only_second, 9);
  EXPECT_NEAR(found.differences[2].p_value, 2 / 512.0, 1e-12);
  EXPECT_EQ(found.only_in_one, std::vector<std::string>{"c"});
  EXPECT_NEAR(found.differences[0].p_value, 2 / 32.0, 1e-12);
  // All three are tests: Holm's factors are 3 for the smallest, then 2 and 1.
  EXPECT_NEAR(found.differences[2].adjusted_p_value, 3 * 2 / 512.0, 1e-12);
  EXPECT_NEAR(found.differences[0].adjusted_p_value, 2 * 2 / 32.0, 1e-12);
  EXPECT_NEAR(found.differences[1].adjusted_p_value, 2 / 16.0, 1e-12);
  EXPECT_CONTAINS(comparison_text(found), "is better in all tasks (acc)");
}

class SampleFiles : public testing::Test {
 protected:
  /// A file of lm-evaluation-harness: a line for each item and filter.
  void write(const std::string& name, const std::vector<Json>& lines) {
    std::string text;
    for (const Json& line : lines) text += line.dump() + "\n";
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    write_file_atomic(folder_.path() / name, text);
  }
  static Json line(int item, const std::string& filter, double value, const std::string& hash = "h") {
    return {
        {"doc_id", item}, {"filter", filter}, {"doc_hash", hash}, {"metrics", {"exact_match"}}, {"exact_match", value}};
  }
  test::TemporaryDirectory folder_;
};

TEST_F(SampleFiles, OfTheHarness) {
  write("m/samples_gsm8k_2025-01-01T00-00-00.1.jsonl", {line(0, "none", 0)});
  write("m/samples_gsm8k_2025-01-02T00-00-00.1.jsonl",
        {line(1, "strict", 0), line(0, "strict", 1), line(0, "flexible", 1), line(1, "flexible", 1)});
  const std::vector<TaskScores> tasks = read_task_scores(folder_.path());
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].task, "gsm8k");
  EXPECT_EQ(tasks[0].metrics, (std::vector<std::string>{"exact_match,strict", "exact_match,flexible"}));
  EXPECT_EQ(tasks[0].terms.at("exact_match,strict"), (ItemSamples{MetricTerms{{1}}, MetricTerms{{0}}}));
}

TEST_F(SampleFiles, RepeatedLinesAndFilesAreSamples) {
  write("m/a/samples_t_2025-01-01T00-00-00.1.jsonl", {line(0, "none", 1), line(1, "none", 0)});
  write("m/a/samples_t_2025-01-02T00-00-00.1.jsonl", {line(1, "none", 0), line(0, "none", 0)});
  write("m/b/samples_t.jsonl", {line(0, "none", 1), line(0, "none", 0)});
  const std::vector<TaskScores> tasks = read_task_scores(folder_.path() / "m", true);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].items, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(tasks[0].terms.at("exact_match"), (ItemSamples{{{1}, {0}, {1}, {0}}, {{0}, {0}}}));
  test::expect_error([&] { read_task_scores(folder_.path() / "m" / "b"); }, "repeats an item");
  write("m/b/samples_t.jsonl", {line(0, "none", 1, "other")});
  test::expect_error([&] { read_task_scores(folder_.path() / "m", true); }, "is another item than an earlier line");
}

TEST_F(SampleFiles, WhatIsNoNumberStaysAnItem) {
  std::filesystem::create_directories(folder_.path() / "m");
  write_file_atomic(
      folder_.path() / "m/samples_t.jsonl",
      R"({"doc_id": 0, "metrics": ["acc", "bits_per_byte", "none"], "acc": NaN, "none": null, "bits_per_byte": [-1, 2]})"
      "\n"
      R"({"doc_id": 1, "metrics": ["acc", "bits_per_byte", "none"], "acc": 1, "none": null, "bits_per_byte": null})"
      "\n");
  const std::vector<TaskScores> tasks = read_task_scores(folder_.path() / "m");
  EXPECT_EQ(tasks.at(0).metrics, (std::vector<std::string>{"acc", "bits_per_byte"}));
  EXPECT_FALSE(has_numbers(tasks[0].terms.at("acc")[0]));
  EXPECT_EQ(tasks[0].terms.at("acc")[1], MetricTerms{{1}});
  EXPECT_EQ(tasks[0].terms.at("bits_per_byte")[1][0].size(), 2U);
  const ModelComparison found = compare_models(tasks, tasks, {"acc", "bits_per_byte"}, {.samples = 10});
  EXPECT_EQ(found.differences.at(0).left_out, 1);
  EXPECT_EQ(found.differences.at(1).left_out, 1);
}

// The harness keeps pairs of answers for F1 and Matthews' correlation, whose mean is no score.
TEST_F(SampleFiles, ListsOfUnknownMeaningAreNoScores) {
  const auto of = [](int item) -> Json {
    return {{"doc_id", item},
            {"metrics", {"f1", "acc", "word_perplexity", "my_error", "brier_score"}},
            {"f1", {0, 1}},
            {"acc", 1.0},
            {"word_perplexity", {-3.5, 2}},
            {"my_error", 0.5},
            {"brier_score", 0.5}};
  };
  write("m/samples_t.jsonl", {of(0), of(1)});
  const std::vector<TaskScores> tasks = read_task_scores(folder_.path());
  EXPECT_EQ(tasks.at(0).metrics, (std::vector<std::string>{"acc", "word_perplexity", "my_error", "brier_score"}));
  for (const ScoreDifference& one :
       compare_models(tasks, tasks, {"acc", "my_error", "brier_score"}, {.samples = 10}).differences)
    EXPECT_EQ(one.larger_is_better, one.metric == "acc") << one.metric;
}

TEST_F(SampleFiles, ADateAtTheEndOfANameIsNoPartOfTheTask) {
  for (const char* task :
       {"a_2025-01-01", "a_2025-01-0xT00", "a_b_2025-01-02T", "_2025-01-01T00-00-00.1", "2025-01-01T00"})
    write(std::string("m/samples_") + task + ".jsonl", {line(0, "none", 0)});
  write("m/samples_b_c_2025-01-01T00:00:00.1.jsonl", {line(0, "none", 0)});
  write("m/samples_.jsonl", {line(0, "none", 0)});
  std::vector<std::string> names;
  for (const TaskScores& task : read_task_scores(folder_.path())) names.push_back(task.task);
  EXPECT_EQ(names, (std::vector<std::string>{"2025-01-01T00", "_2025-01-01T00-00-00.1", "a_2025-01-01",
                                             "a_2025-01-0xT00", "a_b_2025-01-02T", "b_c"}));
}

// Cut to whole numbers, items would be one.
TEST_F(SampleFiles, NumbersOfItemsAreWhole) {
  const auto refused = [&](const Json& number, const std::string& part) {
    Json second = line(0, "none", 1);
    second["doc_id"] = number;
    write("m/samples_t.jsonl", {line(1, "none", 1), second});
    test::expect_error([&] { read_task_scores(folder_.path()); }, "samples_t.jsonl, line 2: " + part);
  };
  refused(1.5, "expected a whole number");
  refused(9223372036854775808U, "expected a whole number");
  refused(-1, "expected a whole number");
  refused("1", "expected a whole number");
  refused(1, "repeats an item");
}

TEST_F(SampleFiles, SeveralModelsInADirectoryAreRefused) {
  write("small/samples_t.jsonl", {line(0, "none", 1)});
  write("large/samples_t.jsonl", {line(0, "none", 1)});
  test::expect_error([&] { read_task_scores(folder_.path()); }, "several models");
}

TEST_F(SampleFiles, OtherItemsAreRefused) {
  write("a/samples_t.jsonl", {line(0, "none", 1), line(1, "none", 1)});
  write("b/samples_t.jsonl", {line(0, "none", 1)});
  write("c/samples_t.jsonl", {line(0, "none", 1), line(1, "none", 1, "other")});
  write("d/samples_t.jsonl", {{{"doc_id", 0}}});
  const auto compare = [&](const char* first, const char* second, const std::vector<std::string>& metrics = {}) {
    return [=, this] {
      compare_models(read_task_scores(folder_.path() / first), read_task_scores(folder_.path() / second), metrics, {});
    };
  };
  test::expect_error(compare("a", "b"), "2 items and the other 1");
  test::expect_error(compare("a", "c"), "item 1 of one file is another one");
  test::expect_error(compare("a", "d"), "has no metrics");
  test::expect_error(compare("a", "a", {"acc"}), "called acc");
  test::expect_error([&] { read_task_scores(folder_.path() / "none"); }, "does not exist");
}

}  // namespace
}  // namespace plumb
