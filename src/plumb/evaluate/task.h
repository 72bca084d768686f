// What a model is evaluated on: tasks, their items, and the registry of tasks. A task is one file in evaluate/tasks.
// Prompts and metrics are those of EleutherAI's lm-evaluation-harness.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/registry.h"

namespace plumb {

/// What is asked about an item, in the terms of the harness.
enum class RequestKind {
  log_likelihood,   // log p(continuation | context) and whether the continuation is what greedy decoding gives
  multiple_choice,  // the same for several continuations of one context
  rolling,          // log p(text), read in windows as long as the model's context
  generate_until    // what greedy decoding writes after a context, up to a stop string
};

/// "loglikelihood", "multiple_choice", "loglikelihood_rolling" or "generate_until", as in the harness's results.
std::string name_of(RequestKind kind);

struct EvaluationItem {
  std::string context;                  // of a rolling request empty
  std::vector<std::string> choices;     // without the delimiter; unless it is a multiple choice, one
  size_t gold = 0;                      // the right choice, the first if there are several
  int64_t words = 0;                    // of a rolling request: those of the text before it was detokenized,
  int64_t bytes = 0;                    // and its bytes, by which its likelihood is divided
  std::string ending = {};              // if not empty, choices end the context, and this is what is likely or not
  std::vector<size_t> also_right = {};  // further right choices

  bool operator==(const EvaluationItem&) const = default;
};

struct EvaluationTask {
  std::string name;                 // "mmlu_anatomy"
  std::vector<std::string> groups;  // "mmlu", "mmlu_stem": their tasks are also reported together, weighted by items
  std::string category;             // "common sense": results are averaged over the tasks of a category
  bool subset = false;              // its items belong to another task, too; a category with that task omits this one
  RequestKind kind = RequestKind::multiple_choice;
  double version = 1;                                               // of the task in the harness
  std::string description;                                          // precedes the examples
  std::string target_delimiter = " ";                               // between context and continuation
  std::string example_delimiter = "\n\n";                           // after each example
  std::vector<std::string> metrics;                                 // names in evaluation_metrics()
  std::vector<EvaluationItem> items;                                // what is asked
  std::vector<EvaluationItem> examples = {};                        // for prompts with examples; empty: other items
  std::function<std::vector<EvaluationItem>()> read_examples = {};  // the same, read when prompts have examples
  std::vector<std::string> group_metrics = {};  // those that are reported for its groups; empty: all that can be
  bool first_examples = false;                  // examples are the first ones, the same for every item, not drawn
  std::vector<std::string> until = {};          // of generate_until: the strings before which an answer ends,
  int64_t max_tokens = 256;                     // and its longest length
};

/// Reads a task's file or files, which lie in `folder`; several tasks if it consists of parts, such as subjects. Throws
/// Error, naming the file and what is wrong with it.
using EvaluationTaskLoader = std::function<std::vector<EvaluationTask>(const std::filesystem::path& folder)>;

Registry<EvaluationTaskLoader>& evaluation_tasks();

/// A category and those of its tasks that have an accuracy.
struct TaskCategory {
  std::string name;
  std::vector<size_t> tasks;  // indices into the list of tasks
};

/// The categories in the order in which the tasks name them.
std::vector<TaskCategory> task_categories(const std::vector<const EvaluationTask*>& tasks);

/// The tasks that a word given by the user stands for: a registered name; that name, "_" and the name of a part; or
/// the path of a file of one's own (evaluate/own_task.h).
std::vector<EvaluationTask> load_evaluation_tasks(const std::string& word, const std::filesystem::path& folder);

/// The tasks of several words. Throws Error if one is named twice.
std::vector<EvaluationTask> load_evaluation_tasks(const std::vector<std::string>& words,
                                                  const std::filesystem::path& folder);

}  // namespace plumb
