// Learning-rate schedules: products of factors, as tensor2tensor writes them ("constant * linear_warmup *
// rsqrt_decay").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/registry.h"

namespace plumb {

/// What the factors read. Steps count from 1.
struct ScheduleOptions {
  double learning_rate = 5e-4;           // constant: the peak of the schedules below
  int64_t warm_up = 4000;                // linear_warmup: steps until 1; 0 or 1: none
  int64_t decay_start = 0;               // step at which a decay leaves 1; 0: max(warm_up, 1)
  int64_t steps = 10000;                 // step at which cosine_decay and linear_decay arrive at decay_floor
  double decay_floor = 0;                // what they arrive at, as a fraction of the peak
  std::vector<int64_t> step_decay_at{};  // step_decay: after each of these steps …
  double step_decay_factor = 0.1;        // … the rate is multiplied by this
  int64_t hidden_size = 512;             // rsqrt_hidden_size
};

/// One factor: its value at a step ≥ 1.
using ScheduleFactor = std::function<double(int64_t step)>;
using ScheduleFactorFactory = std::function<ScheduleFactor(const ScheduleOptions&)>;
Registry<ScheduleFactorFactory>& schedule_factors();

class Schedule {
 public:
  /// `text`: names of factors joined by "*". Throws Error on an unknown or a missing name.
  Schedule(const std::string& text, const ScheduleOptions& options);

  /// The learning rate at a step ≥ 1.
  [[nodiscard]] double operator()(int64_t step) const;

 private:
  std::vector<ScheduleFactor> factors_;
};

}  // namespace plumb
