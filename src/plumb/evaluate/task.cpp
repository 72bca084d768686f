#include "plumb/evaluate/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/evaluate/own_task.h"

namespace plumb {
namespace {

/// The longest registered name that `word` extends by "_" and a part; empty if there is none.
std::string task_with_part(const std::string& word) {
  std::string found;
  for (const std::string& name : evaluation_tasks().names()) {
    if (word.starts_with(name + "_") && name.size() > found.size()) found = name;
  }
  return found;
}

void require_items(const std::vector<EvaluationTask>& tasks, const std::string& word) {
  for (const EvaluationTask& task : tasks) {
    if (task.items.empty()) throw Error(fmt::format("task {} has no items", task.name));
  }
  if (tasks.empty()) throw Error(fmt::format("task {} has no parts", word));
}

}  // namespace

std::string name_of(RequestKind kind) {
  constexpr std::array<const char*, 4> kNames = {"loglikelihood", "multiple_choice", "loglikelihood_rolling",
                                                 "generate_until"};
  return kNames.at(static_cast<size_t>(kind));
}

Registry<EvaluationTaskLoader>& evaluation_tasks() {
  static Registry<EvaluationTaskLoader> registry(
      "evaluation task", {"Evaluation tasks", "plumb evaluate --tasks",
                          "The name of a task with parts selects all of them; a part is named `TASK_PART`. "
                          "[evaluation.md](evaluation.md) says which files they are read from."});
  return registry;
}

std::vector<EvaluationTask> load_evaluation_tasks(const std::string& word, const std::filesystem::path& folder) {
  const bool is_file = word.ends_with(".jsonl") || word.ends_with(".json");
  const std::vector<std::string> names = evaluation_tasks().names();
  const std::string whole = task_with_part(word);
  std::vector<EvaluationTask> tasks;
  if (is_file) {
    tasks.push_back(load_own_task(word));
  } else if (contains(names, word) || whole.empty()) {
    tasks = evaluation_tasks().at(word).make(folder);
  } else {
    tasks = evaluation_tasks().at(whole).make(folder);
    std::vector<std::string> parts;
    for (const EvaluationTask& task : tasks) parts.push_back(task.name);
    std::erase_if(tasks, [&](const EvaluationTask& task) { return task.name != word; });
    if (tasks.empty())
      throw Error(fmt::format("unknown evaluation task '{}'", word),
                  fmt::format("parts of {} whose files are in {}: {}", whole, folder.string(), join(parts)));
  }
  require_items(tasks, word);
  return tasks;
}

std::vector<EvaluationTask> load_evaluation_tasks(const std::vector<std::string>& words,
                                                  const std::filesystem::path& folder) {
  std::vector<EvaluationTask> tasks;
  for (const std::string& word : words) {
    for (EvaluationTask& task : load_evaluation_tasks(word, folder)) {
      if (std::any_of(tasks.begin(), tasks.end(), [&](const auto& earlier) { return earlier.name == task.name; }))
        throw Error(fmt::format("the evaluation task '{}' is named twice", task.name));
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

std::vector<TaskCategory> task_categories(const std::vector<const EvaluationTask*>& tasks) {
  std::vector<TaskCategory> categories;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const EvaluationTask& task = *tasks[i];
    if (!contains(task.metrics, "acc")) continue;
    auto found = std::find_if(categories.begin(), categories.end(),
                              [&](const TaskCategory& each) { return each.name == task.category; });
    if (found == categories.end()) found = categories.insert(found, {task.category, {}});
    found->tasks.push_back(i);
  }
  return categories;
}

}  // namespace plumb
