// Detects threads that are busy when they should be idle.
#pragma once

#include <chrono>
#include <ctime>
#include <thread>

namespace plumb::test {

/// The CPU time in seconds that this process uses, with all its threads, while this thread waits for half a second.
/// Before that, it waits until the threads of OpenMP sleep: those of LLVM's runtime look for more work for 0.2 s.
inline double processor_time_of_waiting() {
  const auto so_far = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double before = so_far();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return so_far() - before;
}

}  // namespace plumb::test
