// Spikes: values far above those of earlier steps, by the median and the median absolute deviation (MAD).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// The middle value, or the mean of the two in the middle. Throws Error if the list is empty.
double median(std::vector<double> values);

/// A value above median + threshold·max(MAD, 0.02·|median|) of its window is a spike, where MAD is the median of
/// |x − median| (Hampel 1974, doi 10.1080/01621459.1974.10482962; Leys et al. 2013, doi 10.1016/j.jesp.2013.03.013).
/// Medians tolerate outliers in up to half of the window, so earlier spikes do not hide later ones. The second term is
/// for series that hardly vary, such as Lion's updates.
struct SpikeOptions {
  int64_t window = 128;   // number of preceding values that a value is compared with
  double threshold = 10;  // in MADs
};

/// A value far above its past.
struct Spike {
  std::string series;
  int64_t step = 0;
  double value = 0;
  double median = 0;      // of the preceding window
  double deviations = 0;  // (value − median)/max(MAD, 0.02·|median|)
  int64_t since = 0;      // first step of the sequence of spikes that this one belongs to
  double before = 0;      // median at that step

  [[nodiscard]] double ratio() const { return value / median; }
};

/// A series of one number per step, with a window of its last values. Not judged until half of the window is filled.
class SpikeSeries {
 public:
  explicit SpikeSeries(std::string name, const SpikeOptions& options) : name_(std::move(name)), options_(options) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Compares a step's value with the window, without adding it. Nonfinite values are not spikes.
  [[nodiscard]] std::optional<Spike> judge(int64_t step, double value);

  /// Adds a value to the window, rounded to float32 so that it is stored in few digits. Ignores nonfinite values.
  void add(double value);

  /// The last spike, unless it is more than 16 steps old.
  [[nodiscard]] const std::optional<Spike>& last() const { return last_; }

  /// The median of the window; empty until half of it is filled.
  [[nodiscard]] std::optional<double> median() const;

  /// The exact state, and the reverse. load_state throws Error on a malformed value.
  [[nodiscard]] Json state() const;
  void load_state(const Json& json);

 private:
  [[nodiscard]] bool ready() const { return static_cast<int64_t>(values_.size()) >= (options_.window + 1) / 2; }

  std::string name_;
  SpikeOptions options_;
  std::deque<double> values_;
  std::optional<Spike> last_;
};

/// A spike as recorded in metrics.jsonl, and the reverse.
Json to_json(const Spike& spike);
Spike spike_from_json(const Json& json);

}  // namespace plumb
