// [scale] with tasks: which models are evaluated on which items, and what the report says about their answers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/study/study.h"
#include "study/tiny_scale_study.h"
#include "support/entries.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

class ScaleEvaluation : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomic(folder_ / name, content);
  }

  [[nodiscard]] StudyConfig study(const std::string& tasks, const std::vector<std::string>& assignments = {}) const {
    std::vector<std::string> all = {"train.steps=30", "train.learning_rate=1e-2", "train.validate_every=30",
                                    "scale.items=3", "scale.tasks=" + tasks};
    all.insert(all.end(), assignments.begin(), assignments.end());
    return test::tiny_scale_study(all);
  }

  /// The files of tasks, as a list of a configuration.
  [[nodiscard]] std::string files(const std::vector<std::string>& names) const {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back("'" + (folder_ / (name + ".jsonl")).string() + "'");
    return "[" + join(quoted) + "]";
  }

  /// Three items whose choices are equally likely, so that the first is chosen, which is right for two. A fourth is
  /// beyond scale.items.
  void write_choices() const {
    std::string lines;
    for (const int gold : {0, 1, 0, 1}) {
      lines += R"({"context": "Question: sail?", "choices": ["a ship", "a ship", "a ship", "a ship"], "gold": )" +
               std::to_string(gold) + R"(, "category": "question answering"})" + "\n";
    }
    write("arc_easy.jsonl", lines);
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ScaleEvaluation, ReportsTheAccuracyOfEachCategoryAndSize) {
  write_choices();
  write("lambada_openai.jsonl",
        R"({"context": "the ship is", "continuation": " zyx qvw zyx qvw", "category": "reading comprehension"})");
  const Json results = run_study(study(files({"arc_easy", "lambada_openai"})), folder_ / "out");
  const Json& rows = test::entry(results["tables"], "id", "scale_evaluation")["rows"];
  ASSERT_EQ(rows.size(), 8U);  // two categories, four sizes
  const Json& models = test::entry(results["tables"], "id", "scale_models")["rows"];
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i][0], "question answering");
    EXPECT_EQ(rows[i][1], "arc_easy");
    EXPECT_EQ(rows[i][2], 3);
    EXPECT_DOUBLE_EQ(rows[i][3].get<double>(), 0.25);
    EXPECT_EQ(rows[i][4], models[2 * i][3]);
    EXPECT_DOUBLE_EQ(rows[i][5].get<double>(), 2.0 / 3);
    EXPECT_EQ(rows[4 + i][0], "reading comprehension");
    EXPECT_EQ(rows[4 + i][3], 0);
    EXPECT_EQ(rows[4 + i][5], 0);
  }
  const Json& lines = test::entry(results["figures"], "id", "scale_evaluation")["series"];
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["x"].size(), 4U);
  EXPECT_NEAR(lines[0]["y"][3].get<double>(), 2.0 / 3 - 0.25, 1e-12);
  EXPECT_THROW(test::entry(results["verdicts"], "id", "claim2"), std::out_of_range);  // no reasoning
}

/// Of one question with two choices, with either as the right one: their probabilities add up to 1, and what the right
/// one gains per byte the other loses. Of equally long choices, the two measures differ by the length.
TEST_F(ScaleEvaluation, RightAnswersAreProbableAmongTheirChoices) {
  const std::string question = R"({"context": "Question: sail?", "choices": ["a ship on the sea", "a boat"], "gold": )";
  write("arc_easy.jsonl", question + "0}\n");
  write("arc_challenge.jsonl", question + "1}\n");
  const std::string equal = R"({"context": "Question: sail?", "choices": ["a ship", "a boat"], "gold": )";
  write("own/ship.jsonl", equal + "0}\n");
  write("own/boat.jsonl", equal + "1}\n");
  run_study(study(files({"arc_easy", "arc_challenge", "own/ship", "own/boat"})), folder_ / "out");
  int models = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "out" / "measurements")) {
    if (!file.path().filename().string().starts_with("evaluation-")) continue;
    ++models;
    const Json answers = read_json(file.path())["result"];
    const auto first = answers["arc_easy"]["right"].get<double>();
    const auto second = answers["arc_challenge"]["right"].get<double>();
    EXPECT_NEAR(std::exp(first) + std::exp(second), 1, 1e-9);
    EXPECT_EQ(first > second, answers["arc_easy"]["accuracy"] == 1) << answers;
    const auto of = [&](const char* task, const char* number) { return answers[task][number].get<double>(); };
    EXPECT_NEAR(of("arc_easy", "margin"), -of("arc_challenge", "margin"), 1e-12);
    EXPECT_NEAR(6 * of("ship", "margin"), of("ship", "right") - of("boat", "right"), 1e-9);
    EXPECT_NE(of("ship", "margin"), 0);
  }
  EXPECT_EQ(models, 8);
}

/// The report is made from stored measurements, here with accuracies edited by hand.
TEST_F(ScaleEvaluation, ComparesComprehensionWithReasoningSeedBySeed) {
  write("lambada_openai.jsonl",
        R"({"context": "the ship is on", "continuation": " the", "category": "reading comprehension"})");
  write("boolean_expressions.jsonl",
        R"({"context": "Q: True and False is\nA:", "choices": ["False", "True"], "gold": 0, )"
        R"("category": "BIG-bench Hard"})");
  const StudyConfig config = study(files({"lambada_openai", "boolean_expressions"}));
  run_study(config, folder_ / "out");
  const auto put = [&](const std::string& model, double comprehension, double reasoning) {
    const auto file = folder_ / "out" / "measurements" / ("evaluation-scale-pre-ln-standard-" + model + ".json");
    Json measurement = read_json(file);
    measurement["result"] = {
        {"lambada_openai", {{"accuracy", comprehension}, {"right", 10 * comprehension - 20}, {"margin", nullptr}}},
        {"boolean_expressions", {{"accuracy", reasoning}, {"right", -reasoning}, {"margin", reasoning}}}};
    write_json(file, measurement);
  };
  put("width8-layers1-lr0.01-seed1", 0.1, 0.5);
  put("width8-layers1-lr0.01-seed2", 0.2, 0.4);
  put("width32-layers2-lr0.01-seed1", 0.4, 0.6);
  put("width32-layers2-lr0.01-seed2", 0.6, 0.55);
  const Json results = run_study(config, folder_ / "out");
  const Json& verdict = test::entry(results["verdicts"], "id", "claim2");
  // (0.3 − 0.1) and (0.4 − 0.15); t = 12.706 with one degree of freedom.
  EXPECT_NEAR(verdict["effect"]["mean"].get<double>(), 0.225, 1e-12);
  EXPECT_NEAR(verdict["effect"]["low"].get<double>(), 0.225 - 12.706 * 0.025, 1e-4);
  EXPECT_EQ(verdict["figure"], "scale_evaluation");
  EXPECT_EQ(verdict["rule"].get<std::string>().find("supported: the 95% interval lies above 0"), 0U) << verdict["rule"];
  EXPECT_EQ(verdict["verdict"], "this setting cannot test it");  // generated text
  const std::string evidence = verdict["evidence"];
  EXPECT_TRUE(evidence.starts_with("Gain in reading comprehension: 0.35 (")) << evidence;
  const Json& rows = test::entry(results["tables"], "id", "scale_evaluation")["rows"];
  EXPECT_NEAR(rows[4][5].get<double>(), 0.45, 1e-12);  // reasoning, smallest model
  EXPECT_NEAR(rows[4][3].get<double>(), 0.5, 1e-12);   // two choices
  const Json& right = test::entry(results["tables"], "id", "scale_right_answers")["rows"];
  EXPECT_NEAR(right[0][2].get<double>(), 10 * 0.15 - 20, 1e-12);  // comprehension, smallest model
  EXPECT_NEAR(right[7][2].get<double>(), -0.575, 1e-12);          // reasoning, largest model
  EXPECT_CONTAINS(results["summary"].dump(),
                  "Gain in the log-probability of the right answer, in nats, from the smallest model to the largest: "
                  "reading comprehension 3.5 (");
  const auto reason = [&] {
    const Json again = run_study(config, folder_ / "out");
    return test::entry(again["verdicts"], "id", "claim2")["reason"].get<std::string>();
  };
  EXPECT_LACKS(reason(), "no model answers");
  // Accuracies of 0 at every size do not show that nothing was gained.
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out" / "measurements")) {
    const std::string name = entry.path().stem();
    const std::string prefix = "evaluation-scale-pre-ln-standard-";
    if (name.starts_with(prefix)) put(name.substr(prefix.size()), 0, 0.5);
  }
  EXPECT_CONTAINS(reason(), "no model answers any item of reading comprehension");
}

/// Measurements edited by hand: the right answers of one task rise by 3 nats with each doubling of the parameters, a
/// text's bytes by 2 with each nat of loss.
TEST_F(ScaleEvaluation, SlopesAreThoseOfLinesThroughAllSizes) {
  write("arc_easy.jsonl", R"({"context": "Question: sail?", "choices": ["a ship on the sea", "a boat"], "gold": 0, )"
                          R"("category": "question answering"})");
  write("own/plays.jsonl", R"({"text": "The ship is on the sea.", "category": "text"})");
  const StudyConfig config = study(files({"arc_easy", "own/plays"}));
  const Json before = run_study(config, folder_ / "out");
  for (const Json& row : test::with_id(before["tables"], "scale_models")["rows"]) {
    if (row[0] != "pre-ln") continue;  // the only scheme that is evaluated
    const std::string size = fmt::format("width{}-layers{}", row[1].get<int>(), row[2].get<int>());
    const auto file = folder_ / "out" / "measurements" /
                      fmt::format("evaluation-scale-pre-ln-standard-{}-lr0.01-seed{}.json", size, row[6].get<int>());
    Json measurement = read_json(file);
    const auto per_byte = measurement["result"]["plays"]["right"].get<double>();
    EXPECT_LT(per_byte, -0.1) << file;
    EXPECT_GT(per_byte, -2 * std::log(256)) << file;
    const double doublings = std::log2(row[3].get<double>());
    measurement["result"] = {{"arc_easy", {{"accuracy", 0.5}, {"right", 3 * doublings}, {"margin", doublings / 2}}},
                             {"plays", {{"accuracy", 0}, {"right", -2 * row[8].get<double>()}, {"margin", nullptr}}}};
    write_json(file, measurement);
  }
  const Json results = run_study(config, folder_ / "out");
  const Json& rows = test::with_id(results["tables"], "scale_slopes")["rows"];
  ASSERT_EQ(rows.size(), 6U);
  const auto expect = [&](size_t row, const char* category, const char* measure, const char* unit, double slope) {
    EXPECT_EQ(rows[row][0], category);
    EXPECT_EQ(rows[row][1], measure);
    EXPECT_EQ(rows[row][2], unit);
    EXPECT_NEAR(rows[row][3].get<double>(), slope, 1e-9);
  };
  expect(0, "question answering", "right answer", "doubling of the parameters", 3);
  expect(1, "question answering", "right minus wrong, per byte", "doubling of the parameters", 0.5);
  expect(5, "plays", "right answer", "nat of loss", 2);  // a text has nothing that would be wrong
  EXPECT_EQ(test::with_id(results["tables"], "scale_margins")["rows"].size(), 4U);
  EXPECT_EQ(test::with_id(results["tables"], "scale_right_answers")["rows"].size(), 8U);
  EXPECT_EQ(test::with_id(results["tables"], "scale_evaluation")["rows"].size(), 4U);  // a text has no accuracy
}

TEST_F(ScaleEvaluation, AnswersAreKeptUntilTheItemsChange) {
  write_choices();
  const auto measured = [&](const StudyConfig& config) {
    run_study(config, folder_ / "out");
    return std::filesystem::last_write_time(folder_ / "out" / "measurements" /
                                            "evaluation-scale-pre-ln-standard-width8-layers1-lr0.01-seed1.json");
  };
  const auto first = measured(study(files({"arc_easy"})));
  EXPECT_EQ(measured(study(files({"arc_easy"}))), first);
  const std::string before = read_file(folder_ / "arc_easy.jsonl");
  write("arc_easy.jsonl", "{\"context\": \"Question: swim?\"" + before.substr(before.find(',')));
  EXPECT_GT(measured(study(files({"arc_easy"}))), first);
}

TEST_F(ScaleEvaluation, MistakesAreFoundBeforeTraining) {
  const auto expect_error = [&](const StudyConfig& config, const std::string& part) {
    const Error error = test::error_of([&] { run_study(config, folder_ / "out"); });
    EXPECT_CONTAINS((std::string(error.what()) + "; " + error.hint()), part) << error.what() << "; " << error.hint();
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / "runs")) << part;
  };
  write_choices();
  expect_error(study("['unknown']"), "unknown evaluation task 'unknown'");
  expect_error(study(files({"piqa"})), "piqa.jsonl");
  expect_error(study(files({"piqa"})), "name files of tasks, which docs/evaluation.md describes");
  expect_error(study(files({"arc_easy", "arc_easy"})), "'arc_easy' is named twice");
  write("written.jsonl", R"({"context": "The ship is on the", "answer": "sea"})");
  expect_error(study(files({"written"})), "the task 'written' has no accuracy, only exact_match");
  expect_error(study(files({"arc_easy"}), {"task.language-modeling.direction='backward'"}), "predict what follows");
  std::string longest = "it";
  for (int i = 0; i < 40; ++i) longest += " sank";
  write("copa.jsonl",
        R"({"context": "The ship sank because", "gold": 0, "choices": ["it leaked.", ")" + longest + "\"]}");
  expect_error(study(files({"copa"}), {"model.positions='learned'", "model.max_positions=17"}), "longer than");
  EXPECT_THROW(static_cast<void>(study(files({"arc_easy"}), {"scale.items=-1"})), Error);
  std::filesystem::remove_all(folder_ / "out");
  expect_error(study(files({"arc_easy"}), {"model.kind='encoder-decoder'", "data.block=0", "train.batch_tokens=1000"}),
               "cannot generate text");
}

}  // namespace
}  // namespace plumb
