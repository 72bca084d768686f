// Few-shot prompts: a description, examples with their answers, and the item.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/evaluate/task.h"

namespace plumb {

struct FewShotOptions {
  int64_t examples = 0;
  uint64_t seed = 1234;  // for drawing examples; the harness's default
};

/// The prompt of each of the first `items` items: the description; for each example its context, the delimiter, its
/// correct choice and the example delimiter (with an ending: context, choice, delimiter, ending, example delimiter);
/// then the item's context. Examples are drawn for each item with Python's random numbers, as in the harness, or are
/// the first ones if the task says so. If they come from the items, an item is never its own example. The prompts of
/// rolling requests are empty. Throws Error if there are too few examples, or on examples for rolling requests.
std::vector<std::string> prompts_of(const EvaluationTask& task, size_t items, const FewShotOptions& options);

}  // namespace plumb
