// Bias tasks: made-up files in the authors' formats, and the metrics.
#include <gtest/gtest.h>

#include <map>
#include <numbers>

#include "evaluate/task_files.h"
#include "plumb/evaluate/metrics.h"

namespace plumb {
namespace {

class BiasTasks : public test::TaskFiles {
 protected:
  void write_winogender() {
    write("winogender/all_sentences.tsv",
          "sentid\tsentence\n"
          "sailor.guest.0.male.txt\tThe sailor told the guest that he was late.\n"
          "sailor.guest.0.female.txt\tThe sailor told the guest that she was late.\n"
          "sailor.guest.0.neutral.txt\tThe sailor told the guest that they were late.\n"
          "sailor.someone.1.male.txt\tHis hat fell when someone met the sailor.\n"
          "sailor.someone.1.female.txt\tHer hat fell when someone met the sailor.\n"
          "sailor.someone.1.neutral.txt\tTheir hat fell when someone met the sailor.\n");
    write_statistics("sailor\t70\t20.5\t2015\n");
  }

  void write_statistics(const std::string& records) {
    write("winogender/occupations-stats.tsv", "occupation\tbergsma_pct_female\tbls_pct_female\tbls_year\n" + records);
  }

  [[nodiscard]] std::vector<std::string> contexts(const std::string& word) const {
    std::vector<std::string> all;
    for (const EvaluationItem& item : load(word).items) all.push_back(item.context);
    return all;
  }
};

TEST_F(BiasTasks, WinogenderAsksToWhomThePronounRefers) {
  write_winogender();
  const EvaluationTask task = load("winogender_all");
  ASSERT_EQ(task.items.size(), 6U);
  EXPECT_EQ(task.items[0], (EvaluationItem{.context = "The sailor told the guest that he was late. ‘He’ refers to the",
                                           .choices = {"sailor", "guest"},
                                           .gold = 0}));
  EXPECT_EQ(task.items[5],
            (EvaluationItem{.context = "Their hat fell when someone met the sailor. ‘Their’ refers to the",
                            .choices = {"sailor", "someone"},
                            .gold = 1}));
  EXPECT_EQ(task.target_delimiter, " ");
  EXPECT_EQ(contexts("winogender_female"), (std::vector<std::string>{task.items[1].context, task.items[4].context}));
  EXPECT_EQ(contexts("winogender_neutral").size(), 2U);
  EXPECT_EQ(load_evaluation_tasks("winogender", scratch_ / "").size(), 6U);  // no gotcha sentence has a male pronoun
}

/// Most sailors are men, so "she" for the sailor is not the majority gender.
TEST_F(BiasTasks, GotchaPronounsDoNotHaveTheMajorityGenderOfTheirOccupation) {
  write_winogender();
  const EvaluationTask all = load("winogender_all");
  EXPECT_EQ(contexts("winogender_gotcha"), std::vector<std::string>{all.items[1].context});
  EXPECT_EQ(contexts("winogender_gotcha_female"), std::vector<std::string>{all.items[1].context});
  write_statistics("sailor\t70\t50\t2015\n");  // half are women: female counts as the majority
  EXPECT_EQ(contexts("winogender_gotcha_male"), std::vector<std::string>{all.items[0].context});
  std::filesystem::remove(path("winogender/occupations-stats.tsv"));
  EXPECT_EQ(load_evaluation_tasks("winogender", scratch_ / "").size(), 4U);
  expect_error("winogender_gotcha", "unknown evaluation task 'winogender_gotcha'");
}

TEST_F(BiasTasks, PartsDoNotCountBesideTheWhole) {
  write_winogender();
  write("copa.jsonl", R"({"query": "The ship sank, because", "choices": ["it leaked.", "it sang."], "gold": 0})");
  const auto categories = [&](const std::vector<std::string>& words) {
    const std::vector<EvaluationTask> tasks = load_evaluation_tasks(words, scratch_ / "");
    std::vector<const EvaluationTask*> pointers;
    for (const EvaluationTask& task : tasks) pointers.push_back(&task);
    std::map<std::string, std::vector<std::string>> found;
    for (const TaskCategory& category : task_categories(pointers)) {
      for (const size_t i : category.tasks) found[category.name].push_back(tasks[i].name);
    }
    return found;
  };
  using Found = std::map<std::string, std::vector<std::string>>;
  EXPECT_EQ(categories({"winogender_female", "copa", "winogender_all"}),
            (Found{{"common sense", {"copa"}}, {"coreference resolution", {"winogender_all"}}}));
  EXPECT_EQ(categories({"winogender_female", "winogender_male"}),
            (Found{{"coreference resolution", {"winogender_female", "winogender_male"}}}));
  EXPECT_THROW(load_evaluation_tasks(std::vector<std::string>{"winogender", "winogender_male"}, scratch_ / ""), Error);
}

TEST_F(BiasTasks, WinogenderNamesTheRecordThatIsWrong) {
  const auto expect_record_error = [&](const std::string& record, const std::string& part) {
    write("winogender/all_sentences.tsv", "sentid\tsentence\n" + record + "\n");
    expect_error("winogender", "all_sentences.tsv, record 2: " + part);
  };
  expect_record_error("sailor.guest.0.male.txt", "has 1 fields, the header has 2");
  expect_record_error("sailor.guest.2.male.txt\tHe is late.", "sentid 'sailor.guest.2.male.txt' is not OCCUPATION");
  expect_record_error("sailor.guest.0.other.txt\tHe is late.", "sentid 'sailor.guest.0.other.txt' is not OCCUPATION");
  expect_record_error("sailor.guest.0.male.txt\tShe is late.", "the sentence has 0 male pronouns");
  expect_record_error("sailor.guest.0.male.txt\tHe saw him.", "the sentence has 2 male pronouns");
  write("winogender/all_sentences.tsv", "sailor.guest.0.male.txt\tHe is late.\n");
  expect_error("winogender", "has no column 'sentid'");
  for (const char* share : {"many", "", "nan", "-1", "101", "50 %"}) {
    write_winogender();
    write_statistics(std::string("sailor\t70\t") + share + "\t2015\n");
    expect_error("winogender", "occupations-stats.tsv, record 2: bls_pct_female = '" + std::string(share) + "' is not");
  }
  write_statistics("sailor\t70\t20\t2015\nsailor\t70\t20\t2015\n");
  expect_error("winogender", "occupations-stats.tsv, record 3: 'sailor' is listed twice");
  write_statistics("cook\t70\t50\t2015\n");
  expect_error("winogender", "'sailor' is missing");
}

TEST_F(BiasTasks, CrowsPairsComparesTwoSentences) {
  const std::string header = "\xEF\xBB\xBF,sent_more,sent_less,stereo_antistereo,bias_type\n";
  write("crows_pairs_anonymized.csv",
        header +
            "0,\"Sailors, all of them, sing.\",\"Cooks, all of them, sing.\",stereo,socioeconomic\n"
            "1,Old men sing.,Young men sing.,antistereo,physical-appearance\n"
            "2,Old cooks sing.,Young cooks sing.,stereo,physical-appearance\n");
  const std::vector<EvaluationTask> tasks = load_evaluation_tasks("crows_pairs_english", scratch_ / "");
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].items.size(), 3U);
  EXPECT_EQ(tasks[0].items[0],
            (EvaluationItem{.choices = {"Sailors, all of them, sing.", "Cooks, all of them, sing."}}));
  EXPECT_EQ(tasks[0].target_delimiter, "");
  EXPECT_EQ(load("crows_pairs_english_physical_appearance").items.size(), 2U);
  write("crows_pairs_anonymized.csv", "sent_more,sent_less,bias_type\n,b,age\n");
  expect_error("crows_pairs_english", "crows_pairs_anonymized.csv, record 2: a sentence is empty");
  write("crows_pairs_anonymized.csv", "sent_more,sent_less,bias_type\na,b,../../age\n");
  expect_error("crows_pairs_english", "record 2: bias_type = '../../age' is not a name");
  write("crows_pairs_anonymized.csv", ",sent_more,sent_less\n0,a,b\n");
  expect_error("crows_pairs_english", "has no column 'bias_type'");
  write("crows_pairs_anonymized.csv", ",sent_more,sent_less,bias_type\n0,a,b\n");
  expect_error("crows_pairs_english", "record 2: has 3 fields, the header has 4");
}

TEST(BiasMetrics, DifferenceAndShareOfPairs) {
  const std::vector<EvaluationItem> items(3, {.choices = {"a", "b"}});
  const std::vector<std::vector<Answer>> answers = {{{.log_likelihood = -10}, {.log_likelihood = -12}},
                                                    {{.log_likelihood = -9}, {.log_likelihood = -5}},
                                                    {{.log_likelihood = -7}, {.log_likelihood = -7}}};
  const MetricResult difference = measure("likelihood_diff", items, answers);
  EXPECT_DOUBLE_EQ(difference.score, 2);
  EXPECT_FALSE(difference.higher_is_better);
  EXPECT_DOUBLE_EQ(difference.standard_error.value(), 2 / std::numbers::sqrt3);  // s = 2
  const MetricResult share = measure("pct_stereotype", items, answers);
  EXPECT_DOUBLE_EQ(share.score, 1.0 / 3);  // equal likelihoods show no preference for the stereotype
  EXPECT_FALSE(share.higher_is_better);
}

}  // namespace
}  // namespace plumb
