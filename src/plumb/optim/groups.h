// Groups of parameters, [[train.groups]]: which of them learn faster or slower, decay, or wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// The parameters whose whole names match one of the patterns, where * is any characters and ? any one.
struct ParameterGroup {
  std::vector<std::string> pattern;
  double learning_rate_factor = 1;
  double weight_decay = -1;  // −1: as without the group
  int64_t frozen_until = 0;  // the step of the first change; 0: the first; −1: there is none

  bool operator==(const ParameterGroup&) const = default;
};
void describe(Fields& field, ParameterGroup& group);

/// What holds for one parameter throughout a run.
struct ParameterSettings {
  double rate_factor = 1;
  double weight_decay = 0;
  int64_t frozen_until = 0;  // as in ParameterGroup

  bool operator==(const ParameterSettings&) const = default;
};

/// The settings of each parameter, in their order: those of the first group that matches it. Where that names no weight
/// decay, or none matches, matrices and embeddings have `weight_decay`, and norms, biases, scalars (whatever has fewer
/// than two dimensions) and positions have none. Throws Error on values out of range, and on a pattern that matches
/// nothing, naming the nearest parameter.
std::vector<ParameterSettings> parameter_settings(const Parameters& parameters,
                                                  const std::vector<ParameterGroup>& groups, double weight_decay);

/// What a step of this number, from 1, does to each parameter.
std::vector<ParameterStep> parameter_steps(const std::vector<ParameterSettings>& settings, int64_t step,
                                           double learning_rate);

/// Lines that say which parameters decay, learn at a rate of their own or are frozen; none if all are alike.
std::vector<std::string> settings_summary(const Parameters& parameters, const std::vector<ParameterSettings>& settings);

}  // namespace plumb
