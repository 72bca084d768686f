// Evaluation tasks, their items, and the registry of tasks. A task is a row of the table in
// evaluate/tasks/json_lines.cpp, or a file beside it. Prompts and metrics are those of EleutherAI's
// lm-evaluation-harness.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/registry.h"

namespace plumb {

/// What is asked about an item, in the harness's terms.
enum class RequestKind {
  log_likelihood,   // log p(continuation | context), and whether greedy decoding yields the continuation
  multiple_choice,  // the same for several continuations of one context
  rolling,          // log p(text), read in windows as long as the model's context
  generate_until    // greedy continuation of a context, up to a stop string
};

/// "loglikelihood", "multiple_choice", "loglikelihood_rolling" or "generate_until", as in the harness's results.
std::string name_of(RequestKind kind);

struct EvaluationItem {
  std::string context;                  // empty for a rolling request
  std::vector<std::string> choices;     // without the delimiter; exactly one unless multiple choice
  size_t gold = 0;                      // index of the right choice, the first if there are several
  int64_t words = 0;                    // of a rolling request's text before detokenization; normalizes perplexity
  int64_t bytes = 0;                    // the same in bytes
  std::string ending = {};              // if not empty: choices end the context, and this text is scored
  std::vector<size_t> also_right = {};  // further right choices

  bool operator==(const EvaluationItem&) const = default;
};

struct EvaluationTask {
  std::string name;                 // "mmlu_anatomy"
  std::vector<std::string> groups;  // "mmlu", "mmlu_stem": their tasks are also reported together, weighted by items
  std::string category;             // "common sense": results are averaged over the tasks of a category
  RequestKind kind = RequestKind::multiple_choice;
  double version = 1;                                               // of the task in the harness
  std::string description;                                          // precedes the examples
  std::string target_delimiter = " ";                               // between context and continuation
  std::string example_delimiter = "\n\n";                           // after each example
  std::vector<std::string> metrics;                                 // names in evaluation_metrics()
  std::vector<EvaluationItem> items;                                // what is asked
  std::vector<EvaluationItem> examples = {};                        // for few-shot prompts; empty: other items
  std::function<std::vector<EvaluationItem>()> read_examples = {};  // the same, read only if needed
  std::vector<std::string> group_metrics = {};                      // reported for its groups; empty: all possible ones
  bool first_examples = false;          // every item gets the first examples, instead of drawn ones
  std::vector<std::string> until = {};  // for generate_until: stop strings
  int64_t max_tokens = 256;             // for generate_until: maximum length of an answer
};

/// Reads a task's files in `folder`; returns several tasks if it consists of parts, such as subjects. Throws Error,
/// naming the file and what is wrong with it.
using EvaluationTaskLoader = std::function<std::vector<EvaluationTask>(const std::filesystem::path& folder)>;

Registry<EvaluationTaskLoader>& evaluation_tasks();

/// A category and its tasks that have an accuracy.
struct TaskCategory {
  std::string name;
  std::vector<size_t> tasks;  // indices into the list of tasks
};

/// The categories in the order in which the tasks name them.
std::vector<TaskCategory> task_categories(const std::vector<const EvaluationTask*>& tasks);

/// The tasks named by a word of the user: a registered name; that name, "_" and the name of a part; or the path of a
/// user-defined task (evaluate/own_task.h). Throws Error on an unknown name, or if a task has no items.
std::vector<EvaluationTask> load_evaluation_tasks(const std::string& word, const std::filesystem::path& folder);

/// The tasks of several words. Throws Error if one is named twice.
std::vector<EvaluationTask> load_evaluation_tasks(const std::vector<std::string>& words,
                                                  const std::filesystem::path& folder);

}  // namespace plumb
