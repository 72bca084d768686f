// Evaluation against lm-evaluation-harness with `transformers` on the same weights, tokenizers and items;
// tests/golden/README.md says where the values come from.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plumb/base/json.h"
#include "plumb/evaluate/evaluate.h"
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
      EXPECT_NEAR(found.log_likelihood, answers[i][k][0].get<double>(), 1e-4) << "item " << i << ", choice " << k;
      if (answers[i][k].size() > 1) {
        EXPECT_EQ(found.greedy, answers[i][k][1].get<bool>()) << "item " << i << ", choice " << k;
      }
    }
  }
}

/// Equal where they are shares of items; otherwise as close as log-likelihoods in float32 are.
void expect_metrics(const TaskResult& result, const Json& metrics) {
  const Json found = evaluation_json({result})["results"][result.task.name];
  for (const auto& [name, value] : metrics.items()) {
    const Json& own = found.at(name + ",none");
    if (value.is_string()) {
      EXPECT_EQ(own, value) << name;
    } else if (name.starts_with("acc") && !name.ends_with("stderr")) {
      EXPECT_EQ(own.get<double>(), value.get<double>()) << name;
    } else {
      EXPECT_NEAR(own.get<double>(), value.get<double>(), 1e-4 * value.get<double>()) << name;
    }
  }
}

TEST(Harness, AnswersAndMetricsAreTheSame) {
  const Json document = read_json(golden() / "harness.json");
  ASSERT_EQ(document["cases"].size(), 12U);
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
  for (const Json& of_harness : read_json(golden() / "harness.json")["prompts"]) {
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

}  // namespace
}  // namespace plumb
