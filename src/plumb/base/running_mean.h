// A mean that follows what it sees: recent values count more.
#pragma once

namespace plumb {

/// m_t = Σ_s decay^(t−s)·x_s / Σ_s decay^(t−s): an exponential moving average without a bias towards its start (as
/// Adam's, Kingma & Ba, arXiv 1412.6980). With a decay of 0.98 about the last 50 values count.
class RunningMean {
 public:
  explicit RunningMean(double decay = 0.98) : decay_(decay) {}

  /// Takes a value in; returns the mean.
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
