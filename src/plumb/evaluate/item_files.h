// Files of evaluation items: one JSON object per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/evaluate/task.h"

namespace plumb {

/// The value of "gold", the index of the right choice. Throws Error unless it is an integer of at least 0.
size_t gold_of(const Json& line);

/// The items that `take` makes from the JSON objects in a file; blank lines are skipped. Throws Error, naming the line,
/// if it is not an object, if `take` throws Error or a JSON exception, or if the item has no choices or its right
/// choice is not one of them.
std::vector<EvaluationItem> read_items(const std::filesystem::path& file,
                                       const std::function<EvaluationItem(const Json& line)>& take);

/// The number of words as the harness counts them: the pieces of re.split(r"\s+", text), including an empty one where
/// the text begins or ends with white space.
int64_t words_between_spaces(std::string_view text);

/// An error about one line of a file.
Error error_in_line(const std::filesystem::path& file, int64_t line, const std::string& what);

}  // namespace plumb
