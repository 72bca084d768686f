// What a search says of the planned run once it has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/check/search.h"

namespace plumb::check {

/// What is known once a search has ended.
struct SearchState {
  const std::vector<Trial>& trials;
  RateBelief belief;           // about the planned run
  RateBelief without_warm_up;  // the same if no warm-up is planned
  int64_t informative = 0;     // trials that these beliefs have seen
  int64_t tried_warm_up = 0;   // CheckResult
  std::optional<int64_t>
      warm_up_that_helps{};     // without a planned one: the shortest with which the planned rate trains
  int64_t least_gradients = 0;  // that would have told something
};

/// How a search ends. In parentheses: the answer.
enum class Ending {
  run_too_short,          // to judge (unknown)
  budget_too_small,       // for one trial (unknown)
  nothing_trains,         // at any rate that could help (cannot)
  nothing_trains_so_far,  // and the planned rate does not (other_rate)
  nothing_trains_yet,     // but it might (unknown)
  moves_too_little,       // at the planned rate (other_rate)
  not_below_frequencies,  // no trial, and no lower rate has been compared (unknown)
  trains,                 // (trains)
  needs_warm_up,          // (needs_warm_up)
  fails,                  // at the planned rate (other_rate)
  longer_warm_up_may_do,  // than those of the trials (unknown)
  near_the_edge           // of the stable rates (unknown)
};
Ending ending_of(const SearchPlan& plan, const SearchState& known);

/// What `plumb check` says of it. What no trial carries is recommended as an estimate, and only where the planned rate
/// fails.
struct Conclusion {
  CheckAnswer verdict = CheckAnswer::unknown;
  std::string answer;
  std::optional<Recommendation> recommended{};
  std::optional<int64_t> shortest_warm_up{};
};
Conclusion conclude(const SearchPlan& plan, const SearchState& known);

/// Whether the planned rate trains, or fails, with a probability of 80%.
bool trains_at_plan(const RateBelief& belief, const SearchPlan& plan);
bool fails_at_plan(const RateBelief& belief, const SearchPlan& plan);

}  // namespace plumb::check
