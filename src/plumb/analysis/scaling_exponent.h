// The power of a model's width, depth or batch size with which a size grows.
#pragma once

#include <string>
#include <vector>

#include "plumb/analysis/statistics.h"

namespace plumb {

/// The verdict of an interval on an exponent, for a margin that is fixed in advance.
enum class Trend {
  grows,      // the interval is above the margin
  constant,   // within ±margin
  shrinks,    // below −margin
  undecided,  // none of these
  diverged    // a size is 0 or not finite: no exponent
};
std::string to_string(Trend trend);

/// size ~ scale^exponent: a line through log(size) against log(scale) for each seed, and the interval of its slope over
/// the seeds.
struct ScalingExponent {
  Interval exponent;
  /// Mean over seeds of the slope between the two largest scales: far from the exponent if there is no power law.
  double at_the_end = 0;
  Trend trend = Trend::undecided;
};

/// sizes[seed][i] is the size at scales[i]; scales ascend. A single seed has no interval and is undecided. Throws Error
/// on fewer than two scales or no seeds, or if a seed has another number of sizes than there are scales.
ScalingExponent scaling_exponent(const std::vector<double>& scales, const std::vector<std::vector<double>>& sizes,
                                 double margin);

}  // namespace plumb
