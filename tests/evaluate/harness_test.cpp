// Evaluation compared with lm-evaluation-harness and `transformers` on the same weights, tokenizers and items;
// tests/golden/README.md describes the origin of the values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plumb/base/json.h"
#include "plumb/evaluate/evaluate.h"
#include "plumb/evaluate/own_task.h"
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

TaskResult evaluated(const Json& of_harness, int64_t batch_tokens) {
  HarnessModel subject(of_harness["model"]);
  EvaluateOptions options;
  options.max_length = of_harness["max_length"];
  options.max_tokens = 6;  // as in the script
  options.ends = ends_of_texts(golden() / of_harness["model"].get<std::string>());
  options.scoring.batch_tokens = batch_tokens;
  options.resampling.samples = 0;
  const std::string file = of_harness["task"].get<std::string>() + ".jsonl";
  return evaluate_task(*subject.model->generates(), subject.encoder, load_own_task(golden() / file), options);
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
  const Json found = evaluation_json({result})["tasks"][result.task.name]["metrics"];
  const std::string error = "_stderr";
  for (const auto& [name, value] : metrics.items()) {
    const bool is_error = name.ends_with(error);
    const Json& metric = found.at(is_error ? name.substr(0, name.size() - error.size()) : name);
    const Json& own = metric.at(is_error ? "standard_error" : "value");
    if (name.starts_with("acc") || name == "exact_match") {
      EXPECT_EQ(own.get<double>(), value.get<double>()) << name;
    } else {
      EXPECT_NEAR(own.get<double>(), value.get<double>(), 1e-4 * value.get<double>()) << name;
    }
  }
}

TEST(Harness, AnswersAndMetricsAreTheSame) {
  const Json document = read_json(golden() / "harness.json");
  ASSERT_EQ(document["cases"].size(), 8U);
  for (const Json& of_harness : document["cases"]) {
    for (const int64_t batch_tokens : {1, 100, 4096}) {
      SCOPED_TRACE(fmt::format("{}, {}, batches of {} tokens", of_harness["model"].get<std::string>(),
                               of_harness["task"].get<std::string>(), batch_tokens));
      const TaskResult result = evaluated(of_harness, batch_tokens);
      expect_answers(result, of_harness["answers"]);
      expect_metrics(result, of_harness["metrics"]);
    }
  }
}

}  // namespace
}  // namespace plumb
