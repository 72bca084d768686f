// Parameter groups, [[train.groups]]: learning rates, weight decay and freezing by parameter name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/base/duration.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// The parameters whose full names match one of the patterns, where * matches any characters and ? any single one.
struct ParameterGroup {
  std::vector<std::string> pattern;
  double learning_rate_factor = 1;
  double weight_decay = -1;  // −1: same as without the group
  Duration warm_up = 0;      // over which their rates grow linearly, besides what the schedule does
  /// The first step that updates them; 0: the first step; −1: never. In tokens or epochs: how long they are frozen.
  Duration frozen_until = 0;
  /// They are frozen again from step `from` up to, but not including, step `until`; in tokens or epochs: from when
  /// until when. `until` = 0: never.
  Duration frozen_again_from = 0, frozen_again_until = 0;

  bool operator==(const ParameterGroup&) const = default;
};
void describe(Fields& field, ParameterGroup& group);

/// The settings of one parameter throughout a run.
struct ParameterSettings {
  double rate_factor = 1;
  double weight_decay = 0;
  int64_t frozen_until = 0;  // in steps, as in ParameterGroup; so are the next two
  int64_t frozen_again_from = 0, frozen_again_until = 0;
  int64_t warm_up = 0;

  [[nodiscard]] bool frozen_at(int64_t step) const {
    return frozen_until < 0 || step < frozen_until || (step >= frozen_again_from && step < frozen_again_until);
  }
  bool operator==(const ParameterSettings&) const = default;
};

/// The settings of each parameter, in the parameters' order, from the first group that matches it. Unless that group
/// sets a weight decay, matrices and embeddings have `weight_decay`; norms, biases, scalars (anything with fewer than
/// two dimensions) and positions have none. Throws Error on values out of range, on durations not in steps (`resolved`
/// in train/timeline.h converts them), and on a pattern that matches nothing, naming the closest parameter.
std::vector<ParameterSettings> parameter_settings(const Parameters& parameters,
                                                  const std::vector<ParameterGroup>& groups, double weight_decay);

/// What step `step`, counted from 1, does to each parameter.
std::vector<ParameterStep> parameter_steps(const std::vector<ParameterSettings>& settings, int64_t step,
                                           double learning_rate);

/// Lines that report which parameters decay, have their own learning rate or are frozen; empty if all are alike.
std::vector<std::string> settings_summary(const Parameters& parameters, const std::vector<ParameterSettings>& settings);

}  // namespace plumb
