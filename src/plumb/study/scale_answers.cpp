#include "plumb/study/scale_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "plumb/analysis/statistics.h"
#include "plumb/base/contains.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/generate.h"
#include "plumb/evaluate/own_task.h"
#include "plumb/ops/device.h"
#include "plumb/task/direction.h"

namespace plumb {

void describe(Fields& field, TaskAnswers& answers) {
  field("accuracy", answers.accuracy);
  field("right", answers.right);
  field("margin", answers.margin);
}

bool is_text(const EvaluationTask& task) { return task.kind == RequestKind::rolling; }

std::shared_ptr<const EvaluationTasks> load_scale_tasks(const ScaleStudy& part) {
  try {
    EvaluationTasks tasks = load_own_tasks(part.tasks);
    for (EvaluationTask& task : tasks) {
      if (!contains(task.metrics, "acc") && !is_text(task))
        throw Error(fmt::format("the task '{}' has no accuracy, only {}", task.name, join(task.metrics)));
      task.metrics = {is_text(task) ? "bits_per_byte" : "acc"};
    }
    return std::make_shared<const EvaluationTasks>(std::move(tasks));
  } catch (const Error& error) {
    throw Error(fmt::format("scale.tasks: {}", error.what()),
                "name files of tasks, which docs/evaluation.md describes, with an accuracy or texts to be read");
  }
}

size_t asked_items(const EvaluationTask& task, int64_t limit) {
  return limit > 0 ? std::min(task.items.size(), static_cast<size_t>(limit)) : task.items.size();
}

double chance_accuracy(const EvaluationTask& task, size_t items) {
  if (task.kind != RequestKind::multiple_choice || items == 0) return 0;
  double sum = 0;
  for (size_t i = 0; i < items; ++i) {
    sum += 1 / static_cast<double>(task.items[i].choices.size());
  }
  return sum / static_cast<double>(items);
}

namespace {

TextEncoder encoder_of(const StudyContext& context) { return {context.data.target_tokenizer(), EvaluatedText::lines}; }

/// No intervals over items.
EvaluateOptions options_of(const ScaleStudy& part, const Generates& model) {
  EvaluateOptions options;
  options.limit = part.items;
  options.max_length = std::min(model.longest(), options.max_length);
  options.resampling.samples = 0;
  return options;
}

/// Everything in a task that a model's answers depend on.
Json settings_of(const EvaluationTask& task, int64_t limit) {
  uint32_t digest = crc32_of(Json{name_of(task.kind), "", " "}.dump());
  const size_t items = asked_items(task, limit);
  for (size_t i = 0; i < items; ++i) {
    const EvaluationItem& item = task.items[i];
    digest = crc32_of(Json{item.context, item.choices, item.gold, ""}.dump(), digest);
  }
  return {{"task", task.name}, {"items", items}, {"crc32", crc32_text(digest)}};
}

/// Of an item: log p(right choice) − log Σ p(choice), or log p of the only continuation.
double right_log_probability(const EvaluationItem& item, const std::vector<Answer>& answers) {
  if (answers.size() == 1) return answers.front().log_likelihood;
  double highest = -std::numeric_limits<double>::infinity();
  for (const Answer& answer : answers) highest = std::max(highest, answer.log_likelihood);
  double all = 0, right = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const double share = std::exp(answers[i].log_likelihood - highest);
    all += share;
    if (i == item.gold) right = share;
  }
  return std::log(right / all);
}

/// Of an item with choices: the right one's log p/bytes, minus the mean over the wrong ones. A text that is more
/// probable everywhere is no gain here, whatever the lengths.
double margin_per_byte(const EvaluationItem& item, const std::vector<Answer>& answers) {
  double right = 0;
  std::vector<double> wrong;
  for (size_t i = 0; i < answers.size(); ++i) {
    const double bytes = std::max(1.0, static_cast<double>(item.choices[i].size()));
    const double per_byte = answers[i].log_likelihood / bytes;
    if (i == item.gold) {
      right = per_byte;
    } else {
      wrong.push_back(per_byte);
    }
  }
  return right - mean_of(wrong);
}

TaskAnswers summary_of(const TaskResult& result) {
  const double score = result.metrics.front().score;
  if (is_text(result.task)) return {0, -score * std::numbers::ln2};
  std::vector<double> right, margins;
  for (size_t i = 0; i < result.items.size(); ++i) {
    const EvaluationItem& item = result.task.items[i];
    right.push_back(right_log_probability(item, result.items[i].answers));
    if (result.task.kind == RequestKind::multiple_choice)
      margins.push_back(margin_per_byte(item, result.items[i].answers));
  }
  return {score, mean_of(right), margins.empty() ? std::nullopt : std::optional(mean_of(margins))};
}

}  // namespace

RunQuestion answers_question(const StudyContext& context, const ScaleStudy& part,
                             const std::shared_ptr<const EvaluationTasks>& tasks) {
  Json settings = Json::array();
  for (const EvaluationTask& task : *tasks) settings.push_back(settings_of(task, part.items));
  return {
      "evaluation", {{"tasks", settings}, {"margin", "per byte of choices"}}, [&context, part, tasks](Model& model) {
        Generates& generator = generator_of(model);
        const TextEncoder encoder = encoder_of(context);
        const EvaluateOptions options = options_of(part, generator);
        ScaleAnswers answers;
        for (const EvaluationTask& task : *tasks)
          answers[task.name] = summary_of(evaluate_task(generator, encoder, task, options));
        return result_json(answers);
      }};
}

void check_scale_tasks(const StudyContext& context, const ScaleStudy& part, const EvaluationTasks& tasks,
                       const ModelConfig& model) {
  TaskConfig task_config = context.config.task;
  task_config.name = context.task.name();  // the data's task if [task] names none
  if (reads_backward(task_config)) {
    throw Error("scale.tasks needs models that predict what follows",
                "leave out task.language-modeling.direction = \"backward\"");
  }
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  const std::unique_ptr<Model> of_shapes = make_model(model);
  const EvaluateOptions options = options_of(part, generator_of(*of_shapes));
  for (const EvaluationTask& task : tasks) {
    try {
      check_items(task, encoder_of(context), options);
    } catch (const Error& error) {
      throw Error(fmt::format("scale.tasks: {}", error.what()), "leave the task out, or raise model.max_positions");
    }
  }
}

}  // namespace plumb
