// User-defined tasks, from a file.
#pragma once

#include <filesystem>

#include "plumb/evaluate/task.h"

namespace plumb {

/// A task from a file of JSON Lines, or of BIG-bench's JSON (".json"). It is named after the file, or by "name" in
/// BIG-bench's JSON. The keys of the first line determine what is asked:
///   {"context", "choices", "gold"}  multiple choice, where `gold` is counted from 0
///   {"context", "continuation"}     the likelihood of a continuation
///   {"context", "answer"}           an answer that the model generates, up to a line break
///   {"text"}                        the likelihood of a text
/// Each line may also have an "id". Throws Error, naming the line, if a line lacks a key or has an unknown one.
///
/// BIG-bench's JSON (Srivastava et al. 2022, arXiv 2206.04615, docs/doc.md) has examples with "input" and
/// "target_scores", the score of each choice. As there, the prompt is example_input_prefix ("\nQ: "), the input, one
/// line per choice (example_choice_prefix, "\n  choice: ") if append_choices_to_input, and example_output_prefix
/// ("\nA: "); an item is correct if the most probable choice is one of those with the largest score. Throws Error on
/// another kind of task, a name that cannot be a file name, or an example with fewer than two choices.
EvaluationTask load_own_task(const std::filesystem::path& file);

}  // namespace plumb
