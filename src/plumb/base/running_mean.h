// A running mean that gives recent values more weight.
#pragma once

namespace plumb {

/// m_t = Σ_s decay^(t−s)·x_s / Σ_s decay^(t−s): an exponential moving average with its initial bias corrected, as
/// in Adam (Kingma & Ba, arXiv 1412.6980). With a decay of 0.98 it covers about the last 50 values.
class RunningMean {
 public:
  explicit RunningMean(double decay = 0.98) : decay_(decay) {}

  /// Adds a value; returns the mean.
  double add(double value) {
    sum_ = decay_ * sum_ + value;
    weight_ = decay_ * weight_ + 1;
    return sum_ / weight_;
  }

 private:
  double decay_;
  double sum_ = 0;
  double weight_ = 0;
};

}  // namespace plumb
