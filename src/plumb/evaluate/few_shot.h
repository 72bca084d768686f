// Prompts: a description, examples with their answers, and the item.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/evaluate/task.h"

namespace plumb {

struct FewShotOptions {
  int64_t examples = 0;
  uint64_t seed = 1234;  // of drawn examples: the default of the harness
};

/// The prompt of each of the first `items` items: the description; for each example its context, the delimiter, its
/// right choice and the example delimiter; the item's context (of an item
/// with an ending, the example's choice comes before the delimiter, and the ending after it). Examples are drawn anew
/// for each item, with Python's random numbers as the harness does, or are the first ones if the task says so. If they
/// are items themselves, an item is no example of itself. Of a rolling request every prompt is empty. Throws Error if
/// there are fewer examples than wanted, or on examples for a rolling request.
std::vector<std::string> prompts_of(const EvaluationTask& task, size_t items, const FewShotOptions& options);

}  // namespace plumb
