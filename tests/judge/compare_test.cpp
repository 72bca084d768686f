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

TaskScores scores(const std::string& task, const std::string& metric, const MetricTerms& terms) {
  TaskScores one{.task = task, .metrics = {metric}, .terms = {{metric, terms}}};
  for (size_t i = 0; i < terms.size(); ++i) {
    one.items.push_back(std::to_string(i));
    one.hashes.emplace_back();
  }
  return one;
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
  EXPECT_EQ(tasks[0].terms.at("exact_match,strict"), (MetricTerms{{1}, {0}}));
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
