// Tasks of one's own, from a file.
#pragma once

#include <filesystem>

#include "plumb/evaluate/task.h"

namespace plumb {

/// A task from a file of JSON Lines, or of BIG-bench's JSON (".json"). It is named after the file, or
/// by "name" in BIG-bench's JSON. The keys of the first line say what is asked:
///   {"context", "choices", "gold"}  a multiple choice, in which `gold` is counted from 0
///   {"context", "continuation"}     the likelihood of a continuation
///   {"context", "answer"}           the answer that the model writes on the line on which the context ends
///   {"text"}                        the likelihood of a text
/// Throws Error, naming the line, if a line lacks a key or has one that is unknown.
EvaluationTask load_own_task(const std::filesystem::path& file);

}  // namespace plumb
