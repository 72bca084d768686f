// Whether more of a metric is better, from its name.
#pragma once

#include <optional>
#include <string>

namespace plumb {

/// By the words in the name: "valid_loss", "eval/accuracy", "top1_acc". Nothing if no word tells, or two contradict.
std::optional<bool> larger_is_better_by_name(const std::string& metric);

}  // namespace plumb
