// The watch "critical_rate": its options and its results.
#pragma once

#include <cstdint>
#include <optional>

#include "plumb/base/config.h"

namespace plumb {

/// [watch.critical_rate]
struct CriticalRateWatchOptions {
  int64_t passes = 30;
  double tolerance = 0.05;
};
void describe(Fields& field, CriticalRateWatchOptions& options);

/// What the watch measures of one step. Keys: docs/formats/run.md.
struct CriticalRateMeasurement {
  static constexpr const char* kWatch = "critical_rate";
  double learning_rate = 0;  // η of the step
  double loss_before = 0;    // of the examples
  double loss_after = 0;
  double slope = 0;             // −∂L/∂η: at most 0 if the step leads uphill from the start
  std::optional<double> value;  // η_c = √(low·high); with those below, absent if none was found
  std::optional<double> low, high;
  std::optional<double> share;    // η/η_c
  std::optional<int64_t> passes;  // forward passes of the search
};
void describe(Fields& field, CriticalRateMeasurement& measurement);

}  // namespace plumb
