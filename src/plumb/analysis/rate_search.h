// The search along an update for the learning rate above which it raises a loss, by values of that loss alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "plumb/base/config.h"

namespace plumb {

/// η_c, where L(w − η·u) rises above L(w), located between two learning rates that were tried: the smallest such η if
/// the loss along u falls and then rises, as the search assumes. Otherwise a smaller one may exist: only the rates
/// tried are known, up to a factor of 30 apart. arXiv 2406.09405 asks for L(w)·(1 + δ) instead, with δ of 0.01 to 0.1,
/// so that its rates are somewhat larger. For a quadratic loss η_c = 2·gᵀu/uᵀHu, so that 2/η_c is the curvature along
/// the update divided by gᵀu; for u = g, at most λ_max(H).
struct CriticalRate {
  double low = 0;      // the loss does not rise at this rate
  double high = 0;     // it rises at this one
  int64_t passes = 0;  // of the loss, including that of L(w)

  [[nodiscard]] double rate() const;                             // √(low·high)
  [[nodiscard]] double sharpness() const { return 2 / rate(); }  // critical sharpness
};
void describe(Fields& field, CriticalRate& rate);

struct RateSearchOptions {
  double start = 1e-3;      // the first learning rate tried
  double tolerance = 0.05;  // the bracket's ends may differ by this fraction
  int64_t passes = 29;      // at most, calls of `rise`
};

/// `slope`: gᵀu, by which the loss falls along the update at first. `rise(η)`: L(w − η·u) − L(w); not finite counts as
/// higher. `agreed`: what several processes make of the next rate; empty: each its own. The search assumes that the
/// loss falls from 0 to its minimum along the update and rises from there. Empty if the slope is not positive, or if
/// the bracket is not found within the passes.
std::optional<CriticalRate> find_critical_rate(double slope, const std::function<double(double)>& rise,
                                               const RateSearchOptions& options = {},
                                               const std::function<double(double)>& agreed = {});

}  // namespace plumb
