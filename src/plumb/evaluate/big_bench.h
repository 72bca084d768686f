// BIG-bench's JSON (Srivastava et al. 2022, arXiv 2206.04615, docs/doc.md): tasks of multiple choice.
#pragma once

#include <filesystem>

#include "plumb/evaluate/task.h"

namespace plumb {

/// A task whose examples have "input" and "target_scores", the score of each choice. As BIG-bench writes it, the prompt
/// is example_input_prefix ("\nQ: "), the input, one line for each choice (example_choice_prefix, "\n  choice: ") if
/// append_choices_to_input, and example_output_prefix ("\nA: "); an item is right if the most probable choice is one of
/// those with the largest score. Throws Error if the file is another kind of task, its name cannot be that of a file,
/// or an example has fewer than two choices.
EvaluationTask load_big_bench_task(const std::filesystem::path& file);

}  // namespace plumb
