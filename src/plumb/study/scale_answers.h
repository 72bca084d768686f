// What the models of [scale] answer to its tasks: accuracies, and how probable right answers are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/evaluate/evaluate.h"
#include "plumb/study/scale_family.h"

namespace plumb {

using EvaluationTasks = std::vector<EvaluationTask>;

/// A model's answers to a task.
struct TaskAnswers {
  double accuracy = 0;
  double right = 0;  // mean log-probability of the right answer in nats: among its choices, or of the one text; of a
                     // text to be read, per byte
  std::optional<double> margin{};  // how much more probable a byte of right choices is than one of wrong ones, in nats;
                                   // of tasks with choices
};
void describe(Fields& field, TaskAnswers& answers);
using ScaleAnswers = std::map<std::string, TaskAnswers>;  // by task

/// Whether the task is a text to be read, which has no accuracy.
bool is_text(const EvaluationTask& task);

/// `scale.tasks`, with the one metric that counts here. Throws Error if they cannot be read or have neither an accuracy
/// nor texts.
std::shared_ptr<const EvaluationTasks> load_scale_tasks(const ScaleStudy& part);

/// How many items of a task are asked if at most `limit` are; 0: all.
size_t asked_items(const EvaluationTask& task, int64_t limit);

/// The expected accuracy of a random choice in the first `items`; 0 for tasks without choices.
double chance_accuracy(const EvaluationTask& task, size_t items);

/// Asks a trained model all tasks, for ScaleAnswers. `context` and `part` must outlive the question.
RunQuestion answers_question(const StudyContext& context, const ScaleStudy& part,
                             const std::shared_ptr<const EvaluationTasks>& tasks);

/// Throws Error if models such as this one cannot be evaluated on the tasks.
void check_scale_tasks(const StudyContext& context, const ScaleStudy& part, const EvaluationTasks& tasks,
                       const ModelConfig& model);

}  // namespace plumb
