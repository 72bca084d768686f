// Evaluation tasks and their items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

/// What is asked about an item, in the terms of lm-evaluation-harness.
enum class RequestKind {
  log_likelihood,   // log p(continuation | context), and whether greedy decoding yields the continuation
  multiple_choice,  // the same for several continuations of one context, each after a space
  rolling,          // log p(text), read in windows as long as the model's context
  generate_until    // greedy continuation of a context, up to a stop string
};

/// "loglikelihood", "multiple_choice", "loglikelihood_rolling" or "generate_until", as the harness names them.
std::string name_of(RequestKind kind);

struct EvaluationItem {
  std::string context;               // empty for a rolling request
  std::vector<std::string> choices;  // without the delimiter; exactly one unless multiple choice
  size_t gold = 0;                   // index of the right choice
  int64_t words = 0;                 // of a rolling request's text; normalizes perplexity
  int64_t bytes = 0;                 // the same in bytes

  bool operator==(const EvaluationItem&) const = default;
};

struct EvaluationTask {
  std::string name;      // "ships"
  std::string category;  // "common sense": results are averaged over the tasks of a category
  RequestKind kind = RequestKind::multiple_choice;
  std::vector<std::string> metrics;     // names in evaluation_metrics()
  std::vector<EvaluationItem> items;    // what is asked
  std::vector<std::string> until = {};  // for generate_until: stop strings
};

/// What precedes each continuation: a space for the choices of a context, otherwise nothing.
std::string delimiter_of(RequestKind kind);

/// A category and its tasks that have an accuracy.
struct TaskCategory {
  std::string name;
  std::vector<size_t> tasks;  // indices into the list of tasks
};

/// The categories in the order in which the tasks name them.
std::vector<TaskCategory> task_categories(const std::vector<const EvaluationTask*>& tasks);

}  // namespace plumb
