// The one thread pool: OpenMP's. Work may throw: no further work is begun then, and the first exception is thrown where
// the work was handed out, since none may leave a parallel region.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

namespace plumb {

/// Carries the first exception of several threads out of a parallel region.
class FirstException {
 public:
  template <typename Work>
  void guard(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      if (!thrown_.exchange(true)) first_ = std::current_exception();
    }
  }
  [[nodiscard]] bool thrown() const { return thrown_.load(std::memory_order_relaxed); }
  /// After the region.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> thrown_ = false;
  std::exception_ptr first_;
};

/// Splits [0, n) into one contiguous range per thread and calls `work(begin, end)` for each. Ranges shorter than
/// `grain` are not split, so that small work stays on one thread. Safe to call from within another parallel region.
template <typename Work>
void parallel_ranges(int64_t n, int64_t grain, const Work& work) {
  const int64_t wanted = std::min<int64_t>(omp_get_max_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (wanted <= 1 || omp_in_parallel() != 0) {
    if (n > 0) work(int64_t{0}, n);
    return;
  }
  FirstException exception;
  // Always the whole team, part of it idle: GCC's OpenMP ends the threads that a smaller team leaves over, with what
  // they keep for themselves, and starts others for the next team.
#pragma omp parallel
  {
    const int64_t threads = std::min<int64_t>(wanted, omp_get_num_threads());
    const int64_t thread = omp_get_thread_num();
    if (thread < threads) {
      const int64_t begin = n * thread / threads;
      const int64_t end = n * (thread + 1) / threads;
      if (begin < end) exception.guard([&] { work(begin, end); });
    }
  }
  exception.rethrow();
}

/// Calls `work(i)` for every i in [0, n), handing items out as threads become free: for items of unequal cost.
template <typename Work>
void parallel_items(int64_t n, const Work& work) {
  if (n <= 1 || omp_in_parallel() != 0) {
    for (int64_t i = 0; i < n; ++i) work(i);
    return;
  }
  FirstException exception;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < n; ++i) {
    if (!exception.thrown()) exception.guard([&] { work(i); });
  }
  exception.rethrow();
}

}  // namespace plumb
