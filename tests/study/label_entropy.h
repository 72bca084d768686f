// The most that a run counts with in the comparisons of a study.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "plumb/task/task.h"

namespace plumb::test {

/// Of the labels of the validation split, by their frequencies there, in nats.
inline double label_entropy(const Task& task) {
  std::map<int64_t, double> counts;
  double all = 0, entropy = 0;
  const auto dataset = task.dataset("valid");
  for (int64_t i = 0; i < dataset->size(); ++i) {
    for (const int64_t label : dataset->batch(std::vector<int64_t>{i}).labels) {
      ++counts[label];
      ++all;
    }
  }
  for (const auto& [label, count] : counts) entropy -= count / all * std::log(count / all);
  return entropy;
}

}  // namespace plumb::test
