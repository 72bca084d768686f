#include "plumb/evaluate/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/evaluate/own_task.h"

namespace plumb {
namespace {

/// The longest registered name that `word` continues with "_"; empty if it continues none.
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
  switch (kind) {
    case RequestKind::log_likelihood:
      return "loglikelihood";
    case RequestKind::multiple_choice:
      return "multiple_choice";
    case RequestKind::rolling:
      return "loglikelihood_rolling";
    case RequestKind::generate_until:
      return "generate_until";
  }
  throw Error("unknown kind of request");
}

Registry<EvaluationTaskLoader>& evaluation_tasks() {
  static Registry<EvaluationTaskLoader> registry("evaluation task");
  return registry;
}

std::vector<EvaluationTask> load_evaluation_tasks(const std::string& word, const std::filesystem::path& folder) {
  const bool is_file = word.ends_with(".jsonl") || word.ends_with(".json");
  const std::vector<std::string> names = evaluation_tasks().names();
  const std::string whole = task_with_part(word);
  std::vector<EvaluationTask> tasks;
  if (is_file) {
    tasks.push_back(load_own_task(word));
  } else if (std::find(names.begin(), names.end(), word) != names.end() || whole.empty()) {
    tasks = evaluation_tasks().at(word).make(folder);
  } else {
    tasks = evaluation_tasks().at(whole).make(folder);
    std::vector<std::string> parts;
    for (const EvaluationTask& task : tasks) parts.push_back(task.name);
    std::erase_if(tasks, [&](const EvaluationTask& task) { return task.name != word; });
    if (tasks.empty())
      throw Error(fmt::format("unknown evaluation task '{}'", word),
                  fmt::format("parts of {}: {}", whole, join(parts)));
  }
  require_items(tasks, word);
  return tasks;
}

}  // namespace plumb
