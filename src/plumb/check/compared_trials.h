// What the trials of a search say of each other.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "plumb/check/search.h"

namespace plumb::check {

/// Whether a trial with this warm-up has told anything.
bool is_informative(const Trial& trial, int64_t warm_up);

/// A trial at a higher rate that trains, with no longer a warm-up, has left the plateau of the labels' frequencies: one
/// that failed there was only slower, and becomes slow.
void excuse_slower_trials(std::vector<Trial>& trials);

/// The losses at the last step that both trials have measured.
std::pair<double, double> last_losses(const Trial& first, const Trial& second);

/// The trial with this warm-up that has the lowest loss, compared at the last step that two have measured; null if none
/// is stable.
const Trial* best_trial(const std::vector<Trial>& trials, int64_t warm_up);

/// Whether a trial is too bad to count as stable: it has failed, or its rate is above that of the best trial and its
/// loss fell below the reference by less than half as much. `best` may be null: then only a failure counts.
bool counts_as_failed(const Trial& trial, const Trial* best, const SearchPlan& plan);

/// A bound on the rate to recommend from random weights, unless steps follow the gradient: 1.5 octaves above the lowest
/// rate whose trial was clearly better, at the same step, than a stable one at a higher rate. Infinite if none was.
double bound_by_lower_trials(const std::vector<Trial>& trials, const SearchPlan& plan);

/// Whether the run was stable in more of its trials with this warm-up than it was not, at this rate.
bool was_stable(const std::vector<Trial>& trials, double rate, int64_t warm_up, const SearchPlan& plan);

/// The rate of a control, if the best trial has gained so little that a much lower rate may gain more, as on a plateau,
/// and no lower one is known to gain less. 0: none is needed.
double lower_control_rate(const std::vector<Trial>& trials, int64_t warm_up, const SearchPlan& plan);

/// Where trials go on if at least three with this warm-up have failed and none has not: far below, to find a rate that
/// trains, or to say that none does. Infinite otherwise.
double rate_below_failures(const std::vector<Trial>& trials, int64_t warm_up);

/// The smallest share of the gradient that reached the first layer in a trial that failed without a warm-up on the
/// plateau of the labels' frequencies; empty if none has.
std::optional<double> least_gradient_at_input(const std::vector<Trial>& trials);

/// The smallest rate that has told anything, infinite without one.
double smallest_rate(const std::vector<Trial>& trials);

}  // namespace plumb::check
