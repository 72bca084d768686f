// An axis of a figure: where values lie on it, and its ticks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

struct Tick {
  double at = 0;      // in [0, 1] along the axis
  std::string label;  // empty for a minor tick
};

/// Linear or logarithmic, as an axis of results.json says (docs/formats/results.md).
class SvgAxis {
 public:
  /// An axis that covers these values, and a little more on both sides. `from_zero`: a linear axis contains zero, and
  /// does not go beyond it on a side without values.
  SvgAxis(const Json& axis, const std::vector<double>& values, bool from_zero);
  /// An axis of so many categories: the i-th lies at i.
  explicit SvgAxis(size_t categories);

  /// The place of a value: 0 at the beginning of the axis, 1 at its end; empty if the axis has none for it. Below a
  /// logarithmic axis, values that are positive lie at its beginning.
  [[nodiscard]] std::optional<double> at(double value) const;
  /// About `count` ticks with labels, and minor ones between the powers of ten.
  [[nodiscard]] std::vector<Tick> ticks(int count) const;

 private:
  [[nodiscard]] std::optional<double> forward(double value) const;
  [[nodiscard]] double share(double coordinate) const { return (coordinate - low_) / (high_ - low_); }
  [[nodiscard]] std::vector<Tick> linear_ticks(double low, double high, int count) const;
  [[nodiscard]] std::vector<Tick> log_ticks(int count) const;

  bool log_ = false;
  bool whole_ = false;         // all values are whole numbers, and so are ticks
  double low_ = 0, high_ = 1;  // the ends: values, or logarithms of them
};

}  // namespace plumb
