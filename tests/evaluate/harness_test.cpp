// Evaluation compared with lm-evaluation-harness and `transformers` on the same weights, tokenizers and items;
// tests/golden/README.md describes the origin of the values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plumb/base/json.h"
#include "plumb/evaluate/evaluate.h"
#include "plumb/evaluate/exact_match.h"
#include "plumb/evaluate/results.h"
#include "plumb/interop/import.h"
#include "plumb/model/model.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

fs::path golden() { return test::source_directory() / "tests" / "golden" / "evaluation"; }

/// A model of `transformers` with its tokenizer.
struct HarnessModel {
  explicit HarnessModel(const std::string& name)
      : encoder(Tokenizer::from_file(golden() / name), EvaluatedText::whole) {
    const ImportedModel imported = read_model_folder(golden() / name);
    model = make_model(imported.config);
    load_parameters(model->parameters(), imported.tensors, name);
  }

  std::unique_ptr<Model> model;
  TextEncoder encoder;
};

TaskResult evaluated(const Json& of_harness, int64_t bootstrap, int64_t batch_tokens) {
  HarnessModel subject(of_harness["model"]);
  EvaluateOptions options;
  options.few_shot.examples = of_harness["few_shot"];
  options.max_length = of_harness["max_length"];
  options.max_tokens = 6;  // as in the script
  options.ends = ends_of_texts(golden() / of_harness["model"].get<std::string>());
  options.scoring.batch_tokens = batch_tokens;
  options.metrics.harness_bootstrap = bootstrap;
  options.metrics.resampling.samples = 0;
  const std::string file = of_harness["task"].get<std::string>() + ".jsonl";
  return evaluate_task(*subject.model->generates(), subject.encoder,
                       load_evaluation_tasks((golden() / file).string(), "").at(0), options);
}

void expect_answers(const TaskResult& result, const Json& answers) {
  ASSERT_EQ(result.items.size(), answers.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(result.items[i].answers.size(), answers[i].size());
    for (size_t k = 0; k < answers[i].size(); ++k) {
      const Answer& found = result.items[i].answers[k];
      if (answers[i][k][0].is_string()) {
        EXPECT_EQ(found.text, answers[i][k][0].get<std::string>()) << "item " << i;
        continue;
      }
      EXPECT_NEAR(found.log_likelihood, answers[i][k][0].get<double>(), 1e-4) << "item " << i << ", choice " << k;
      if (answers[i][k].size() > 1) {
        EXPECT_EQ(found.greedy, answers[i][k][1].get<bool>()) << "item " << i << ", choice " << k;
      }
    }
  }
}

/// Accuracies and exact match must be equal; other metrics as close as float32 log-likelihoods are.
void expect_metrics(const TaskResult& result, const Json& metrics) {
  const Json found = evaluation_json({result})["results"][result.task.name];
  for (const auto& [name, value] : metrics.items()) {
    const Json& own = found.at(name + ",none");
    if (value.is_string()) {
      EXPECT_EQ(own, value) << name;
    } else if ((name.starts_with("acc") || name == "exact_match")) {
      EXPECT_EQ(own.get<double>(), value.get<double>()) << name;
    } else {
      EXPECT_NEAR(own.get<double>(), value.get<double>(), 1e-4 * value.get<double>()) << name;
    }
  }
}

TEST(Harness, AnswersAndMetricsAreTheSame) {
  const Json document = read_json(golden() / "harness.json");
  ASSERT_EQ(document["cases"].size(), 16U);
  for (const Json& of_harness : document["cases"]) {
    for (const int64_t batch_tokens : {1, 100, 4096}) {
      SCOPED_TRACE(fmt::format("{}, {}, {} examples, batches of {} tokens", of_harness["model"].get<std::string>(),
                               of_harness["task"].get<std::string>(), of_harness["few_shot"].get<int64_t>(),
                               batch_tokens));
      const TaskResult result = evaluated(of_harness, document["bootstrap"], batch_tokens);
      expect_answers(result, of_harness["answers"]);
      expect_metrics(result, of_harness["metrics"]);
    }
  }
}

TEST(Harness, PromptsAreTheSame) {
  const Json document = read_json(golden() / "harness.json");
  ASSERT_FALSE(document["prompts"].empty());
  for (const Json& of_harness : document["prompts"]) {
    const std::string name = of_harness["case"];
    SCOPED_TRACE(fmt::format("{}, {} examples", name, of_harness["few_shot"].get<int64_t>()));
    const bool first = name == "first";
    const std::string file = (first ? "choices" : name) + ".jsonl";
    EvaluationTask task = load_evaluation_tasks((golden() / file).string(), "").at(0);
    task.first_examples = first;
    if (first) task.description = "A description.\n\n";
    EXPECT_EQ(Json(prompts_of(task, task.items.size(), {.examples = of_harness["few_shot"]})), of_harness["prompts"]);
  }
}

/// The requests of a task, as [context, continuation].
Json requests_of_items(const TaskResult& result) {
  Json requests = Json::array();
  for (const ItemResult& item : result.items) {
    Json& of_item = requests.emplace_back(Json::array());
    for (size_t k = 0; k < item.continuations.size(); ++k)
      of_item.push_back(Json::array({item.context(k), item.continuations[k]}));
  }
  return requests;
}

TEST(Harness, TasksInTheFilesOfTheirAuthorsAskTheSame) {
  HarnessModel subject("gpt2");
  const Json tasks = read_json(golden() / "harness.json")["tasks"];
  ASSERT_EQ(tasks.size(), 8U);
  for (const Json& of_harness : tasks) {
    const std::string name = of_harness["task"];
    SCOPED_TRACE(fmt::format("{}, {} examples", name, of_harness["few_shot"].get<int64_t>()));
    EvaluateOptions options;
    options.few_shot.examples = of_harness["few_shot"];
    options.max_length = 48;
    const TaskResult result = evaluate_task(*subject.model->generates(), subject.encoder,
                                            load_evaluation_tasks(name, golden()).at(0), options);
    EXPECT_EQ(requests_of_items(result), of_harness["requests"]);
    Json gold = Json::array();
    for (const EvaluationItem& item : result.task.items) gold.push_back(item.gold);
    EXPECT_EQ(gold, of_harness["gold"]);
  }
}

TEST(Harness, FiltersFindTheSameAnswers) {
  const Json filters = read_json(golden() / "harness.json")["filters"];
  const std::string question = filters["question"];
  ASSERT_GT(filters["answers"].size(), 30U);
  for (const Json& of_harness : filters["answers"]) {
    const std::string written = of_harness["written"], target = of_harness["target"];
    SCOPED_TRACE(fmt::format("'{}' for {}", written, target));
    const std::vector<EvaluationItem> items = {{.context = "Q: " + question + "\nA:", .choices = {target}}};
    const std::vector<std::vector<Answer>> answers = {std::vector<Answer>{Answer{.text = written}}};
    EXPECT_EQ(extracted_answer(written, items[0].context, target), of_harness["found"].get<std::string>());
    EXPECT_EQ(measure("exact_match,strict-match", items, answers).score == 1, of_harness["strict"].get<bool>());
    EXPECT_EQ(measure("exact_match,flexible-extract", items, answers).score == 1, of_harness["flexible"].get<bool>());
  }
}

TEST(Harness, GroupsAreTheSame) {
  const Json group = read_json(golden() / "harness.json")["group"];
  std::vector<TaskResult> tasks;
  for (size_t i = 0; i < group["items"].size(); ++i) {
    TaskResult& result = tasks.emplace_back();
    result.task = {.name = std::to_string(i), .groups = {"all"}, .category = "made up"};
    result.items.resize(group["items"][i].get<size_t>());
    result.metrics = {{.name = "acc", .score = group["scores"][i], .standard_error = group["errors"][i].get<double>()}};
  }
  const std::vector<GroupResult> groups = groups_of(tasks);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_NEAR(groups[0].metrics.at(0).score, group["score"].get<double>(), 1e-12);
  EXPECT_NEAR(*groups[0].metrics.at(0).standard_error, group["stderr"].get<double>(), 1e-12);
}

TEST(Harness, GroupsReportTheMetricsThatTheirTasksSay) {
  TaskResult result;
  result.task = {.name = "part", .groups = {"all"}, .group_metrics = {"exact_match,flexible-extract"}};
  result.items.resize(2);
  result.metrics = {{.name = "exact_match,strict-match", .score = 0},
                    {.name = "exact_match,flexible-extract", .score = 1}};
  const std::vector<GroupResult> groups = groups_of({result});
  ASSERT_EQ(groups.size(), 1U);
  ASSERT_EQ(groups[0].metrics.size(), 1U);
  EXPECT_EQ(groups[0].metrics[0].name, "exact_match,flexible-extract");
  EXPECT_EQ(groups[0].metrics[0].score, 1);
  result.task.group_metrics.clear();
  EXPECT_EQ(groups_of({result})[0].metrics.size(), 2U);
}

// The deviation of a single sample is unknown.
TEST(Metrics, OneBootstrapSampleGivesNoStandardError) {
  const std::vector<EvaluationItem> items(2, {.choices = {"a"}});
  const std::vector<std::vector<Answer>> answers = {{{.log_likelihood = -10}}, {{.log_likelihood = -9}}};
  EXPECT_TRUE(measure("perplexity", items, answers, {.harness_bootstrap = 2}).standard_error.has_value());
  EXPECT_FALSE(measure("perplexity", items, answers, {.harness_bootstrap = 1}).standard_error.has_value());
}

}  // namespace
}  // namespace plumb
