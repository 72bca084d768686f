// Spikes: values of a step far above those of the steps before it, by the median and the median absolute deviation.
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

/// What is compared with its own past: a value above median + threshold·max(MAD, 0.02·|median|) is a spike, where MAD
/// is the median of |x − median| (Hampel 1974, doi 10.1080/01621459.1974.10482962; Leys et al. 2013, doi
/// 10.1016/j.jesp.2013.03.013). Medians ignore up to half of the window, so that earlier spikes hide no later ones. The
/// second term is for series that hardly vary, such as the update of Lion.
struct SpikeOptions {
  int64_t window = 128;   // values that one is compared with, the last ones before it
  double threshold = 10;  // in MADs
};

/// A value that is far above its past.
struct Spike {
  std::string series;
  int64_t step = 0;
  double value = 0;
  double median = 0;      // of the window before it
  double deviations = 0;  // (value − median)/max(MAD, 0.02·|median|)
  int64_t since = 0;      // the step of the first of the spikes that this one continues
  double before = 0;      // the median at that step

  [[nodiscard]] double ratio() const { return value / median; }
};

/// One number per step, with its last values. Not judged before half of the window is filled.
class SpikeSeries {
 public:
  explicit SpikeSeries(std::string name, const SpikeOptions& options) : name_(std::move(name)), options_(options) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Compares the value of a step with the window. Values that are not finite are no spikes here, and are not kept.
  [[nodiscard]] std::optional<Spike> judge(int64_t step, double value);

  /// Adds a value to the window, rounded to float32, so that it is stored in few digits.
  void add(double value);

  /// The last spike, as long as it has not been over for more than 16 steps.
  [[nodiscard]] const std::optional<Spike>& last() const { return last_; }

  /// Of the window; empty before half of it is filled.
  [[nodiscard]] std::optional<double> median() const;

  /// The state, exactly; and the reverse. load_state throws Error if it is not one.
  [[nodiscard]] Json state() const;
  void load_state(const Json& json);

 private:
  [[nodiscard]] bool ready() const { return static_cast<int64_t>(values_.size()) >= (options_.window + 1) / 2; }

  std::string name_;
  SpikeOptions options_;
  std::deque<double> values_;
  std::optional<Spike> last_;
};

/// The part of metrics.jsonl that tells of a spike.
Json to_json(const Spike& spike);
Spike spike_from_json(const Json& json);

}  // namespace plumb
