// What a model says to one request.
#pragma once

#include <optional>
#include <string>

namespace plumb {

struct Answer {
  double log_likelihood = 0;             // of the continuation, natural logarithm
  bool greedy = false;                   // whether every token of it is the most probable one
  std::optional<std::string> text = {};  // instead of these, what the model writes if it is asked to

  bool operator==(const Answer&) const = default;
};

}  // namespace plumb
