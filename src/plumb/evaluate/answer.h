// A model's answer to one request.
#pragma once

#include <optional>
#include <string>

namespace plumb {

struct Answer {
  double log_likelihood = 0;             // of the continuation, natural logarithm
  bool greedy = false;                   // whether each of its tokens is the most probable one
  std::optional<std::string> text = {};  // of a generation request, instead of the above: the generated text

  bool operator==(const Answer&) const = default;
};

}  // namespace plumb
