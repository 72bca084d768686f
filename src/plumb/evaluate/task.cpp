#include "plumb/evaluate/task.h"

#include <algorithm>
#include <array>

#include "plumb/base/contains.h"

namespace plumb {

std::string name_of(RequestKind kind) {
  constexpr std::array<const char*, 4> kNames = {"loglikelihood", "multiple_choice", "loglikelihood_rolling",
                                                 "generate_until"};
  return kNames.at(static_cast<size_t>(kind));
}

std::string delimiter_of(RequestKind kind) { return kind == RequestKind::multiple_choice ? " " : ""; }

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
