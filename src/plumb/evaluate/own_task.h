// User-defined tasks, from files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/evaluate/task.h"

namespace plumb {

/// A task from a file of JSON Lines, named after the file. The keys of the first line determine what is asked:
///   {"context", "choices", "gold"}  multiple choice, where `gold` is counted from 0
///   {"context", "continuation"}     the likelihood of a continuation
///   {"context", "answer"}           an answer that the model generates, up to a line break, or to a string in "until"
///   {"text"}                        the likelihood of a text
/// Each line may also have an "id", and a "category" and "until", the same in all lines. Throws Error, naming the line,
/// if a line lacks a key or has an unknown one, or if its right choice is not one of its choices; and if there are no
/// items.
EvaluationTask load_own_task(const std::filesystem::path& file);

/// The tasks in files (*.jsonl). Throws Error on another name, as that of a benchmark, if two tasks have the same name,
/// and as load_own_task.
std::vector<EvaluationTask> load_own_tasks(const std::vector<std::string>& files);

}  // namespace plumb
