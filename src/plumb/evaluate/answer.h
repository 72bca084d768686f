// What a model says to one request.
#pragma once

namespace plumb {

struct Answer {
  double log_likelihood = 0;  // of the continuation, natural logarithm
  bool greedy = false;        // whether every token of it is the most probable one

  bool operator==(const Answer&) const = default;
};

}  // namespace plumb
