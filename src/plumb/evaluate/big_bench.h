// Multiple-choice tasks in BIG-bench's JSON (Srivastava et al. 2022, arXiv 2206.04615, docs/doc.md).
#pragma once

#include <filesystem>

#include "plumb/evaluate/task.h"

namespace plumb {

/// A task whose examples have "input" and "target_scores", the score of each choice. As in BIG-bench, the prompt is
/// example_input_prefix ("\nQ: "), the input, one line per choice (example_choice_prefix, "\n  choice: ") if
/// append_choices_to_input, and example_output_prefix ("\nA: "); an item is correct if the most probable choice is one
/// of those with the largest score. Throws Error on another kind of task, a task name that cannot be a file name, or an
/// example with fewer than two choices.
EvaluationTask load_big_bench_task(const std::filesystem::path& file);

}  // namespace plumb
