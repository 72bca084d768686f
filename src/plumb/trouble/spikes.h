// Spikes: values far above those of earlier steps, by the median and the median absolute deviation (MAD) of logarithms.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"

namespace plumb {

/// The middle value, or the mean of the two in the middle. Throws Error if the list is empty.
double median(std::vector<double> values);

/// A value x is a spike if ln(x/median) > threshold·max(MAD, least_spread), where median is that of its window and MAD
/// the median of |ln(x/median)| (Hampel 1974, doi 10.1080/01621459.1974.10482962; Leys et al. 2013, doi
/// 10.1016/j.jesp.2013.03.013). Losses and norms are positive and vary by factors: on a linear scale, a healthy norm of
/// three times its median would be a spike. Medians tolerate outliers in up to half of the window, so earlier spikes do
/// not hide later ones. least_spread is for series that hardly vary, such as Lion's updates.
struct SpikeOptions {
  int64_t window = 128;        // number of preceding values that a value is compared with
  double threshold = 10;       // in MADs
  double least_spread = 0.02;  // with a threshold of 10, a spike is at least e^0.2 = 1.22 times the median
};

/// A value far above its past.
struct Spike {
  std::string series;
  int64_t step = 0;
  double value = 0;
  double median = 0;      // of the preceding window
  double deviations = 0;  // ln(value/median)/max(MAD, least_spread)
  int64_t since = 0;      // first step of the sequence of spikes that this one belongs to
  double before = 0;      // median at that step

  [[nodiscard]] double ratio() const { return value / median; }
};

/// As recorded in metrics.jsonl.
void describe(Fields& field, Spike& spike);

/// A series of one number per step, with a window of its last values. Not judged until half of the window is filled.
class SpikeSeries {
 public:
  explicit SpikeSeries(std::string name, const SpikeOptions& options) : name_(std::move(name)), options_(options) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Compares a step's value with the window, without adding it. A value that is not finite is no spike.
  [[nodiscard]] std::optional<Spike> judge(int64_t step, double value);

  /// Adds a value to the window, rounded to float32 so that it is stored in few digits. Ignores values that are not
  /// finite or not positive, which have no logarithm.
  void add(double value);

  /// The last spike, unless it is more than 16 steps old.
  [[nodiscard]] const std::optional<Spike>& last() const { return last_; }

  /// The median of the window; empty until half of it is filled.
  [[nodiscard]] std::optional<double> median() const;

  /// The exact state. Reading throws Error on a malformed value.
  friend void describe(Fields& field, SpikeSeries& series);

 private:
  [[nodiscard]] bool ready() const { return static_cast<int64_t>(values_.size()) >= (options_.window + 1) / 2; }
  /// The window as one string, since it has many values, and the reverse.
  [[nodiscard]] std::string text() const;
  void take(const std::string& text);

  std::string name_;
  SpikeOptions options_;
  std::deque<double> values_;
  std::optional<Spike> last_;
};

}  // namespace plumb
