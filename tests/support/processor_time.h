// Whether threads are at work that should have come to rest.
#pragma once

#include <chrono>
#include <ctime>
#include <thread>

namespace plumb::test {

/// The processor time in seconds that this process takes, with all its threads, while this one waits half a second.
inline double processor_time_of_waiting() {
  const auto so_far = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = so_far();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return so_far() - before;
}

}  // namespace plumb::test
