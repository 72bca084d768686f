// Learning rate schedules: products of factors, in tensor2tensor's notation ("constant * linear_warmup * rsqrt_decay").
// Each factor is a file in schedule/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/registry.h"

namespace plumb {

/// The properties of a run that factors depend on. Steps count from 1.
struct ScheduleFrame {
  double learning_rate = 5e-4;  // at the peak
  int64_t warm_up = 4000;       // steps of warm-up; 0 or 1: none
  int64_t decay_start = 0;      // step at which a decay begins; 0: max(warm_up, 1)
  int64_t steps = 10000;        // step at which a finite decay reaches decay_floor
  double decay_floor = 0;       // its final value, as a fraction of the peak
  int64_t hidden_size = 512;    // model width

  /// The step s at which a decay begins.
  [[nodiscard]] int64_t decay_begin() const;

  /// Progress from decay_begin() to the last step, from 0 to 1.
  [[nodiscard]] double decay_progress(int64_t step) const;
};

/// Whether a schedule has this factor.
bool has_schedule_factor(const std::string& schedule, const std::string& name);

/// One factor: its value at a step ≥ 1.
using ScheduleFactor = std::function<double(int64_t step)>;

/// Makes a factor. Options have been checked.
using ScheduleFactorFactory = std::function<ScheduleFactor(const ScheduleFrame&, const Options&)>;
Registry<ScheduleFactorFactory>& schedule_factors();

class Schedule {
 public:
  /// `text`: names of factors joined by "*"; `options`: their options, by name. Throws Error on an unknown or missing
  /// name, on options out of range, and unless the factor `constant`, the learning rate itself, is given exactly once.
  Schedule(const std::string& text, const ScheduleFrame& frame, const VariantOptions& options = {});

  /// The learning rate at a step ≥ 1.
  [[nodiscard]] double operator()(int64_t step) const;

 private:
  std::vector<ScheduleFactor> factors_;
};

/// Visits the section of every factor that has options, as describe_options() does for a single choice. The sections of
/// the factors in `text` are always written.
void describe_schedule_options(Fields& field, const std::string& text, VariantOptions& options);

}  // namespace plumb
