// Timing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace plumb {

/// Starts when it is constructed.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

/// Seconds per call: the median of `runs` calls after a warm-up call. Short calls are repeated until they take 50 ms in
/// all. If `runs` is 1 and the warm-up takes more than 5 s, its time is returned.
template <typename Work>
double median_seconds(int64_t runs, const Work& work) {
  constexpr double kLong = 5;
  constexpr double kShort = 0.05;
  std::vector<double> seconds;
  double sum = 0;
  for (int64_t i = 0; i <= runs || sum < kShort; ++i) {
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
    if (i == 0 && runs == 1 && seconds.front() > kLong) break;
    sum += seconds.back();
    if (i == 0) seconds.clear();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace plumb
