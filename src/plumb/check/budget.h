// How much `plumb check` may spend.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace plumb::check {

struct Budget {
  int64_t gradients = std::numeric_limits<int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
};

/// "5%" of the planned steps, a time ("90s", "2min", "1h"), or a number of gradients ("250g"). Throws UsageError on
/// anything else.
Budget parse_budget(const std::string& text, int64_t planned_steps);

/// 5% of the planned steps or, in a short run, the 250 gradients that answers usually take.
Budget usual_budget(int64_t planned_steps);

}  // namespace plumb::check
