// The only thread pool: OpenMP's. Work may throw: then no further work starts, and the first exception is rethrown to
// the caller, since no exception may leave a parallel region.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace plumb {

/// Calls `work(thread, threads)` once in every thread of the team. Always uses the whole team: for a smaller one, GCC's
/// OpenMP would terminate the remaining threads, along with their thread-local data, and start new ones for the next
/// team. `work` must not throw.
template <typename Work>
#ifdef __SANITIZE_THREAD__
// GCC's OpenMP is not instrumented for the thread sanitizer, which must be told that what precedes a region happens
// before it, and what follows happens after it.
__attribute__((no_sanitize_thread, noinline))
#endif
void on_team(const Work& work) {
#ifdef __SANITIZE_THREAD__
  char begin;
  char end;
  __tsan_release(&begin);
#pragma omp parallel
  {
    __tsan_acquire(&begin);
    work(omp_get_thread_num(), omp_get_num_threads());
    __tsan_release(&end);
  }
  __tsan_acquire(&end);
#else
#pragma omp parallel
  work(omp_get_thread_num(), omp_get_num_threads());
#endif
}

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
  /// Call it after the region.
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
  on_team([&](int64_t thread, int64_t team) {
    const int64_t threads = std::min(wanted, team);
    const int64_t begin = n * thread / threads;
    const int64_t end = n * (thread + 1) / threads;
    if (thread < threads && begin < end) exception.guard([&] { work(begin, end); });
  });
  exception.rethrow();
}

/// Calls `work(i)` for every i in [0, n), assigning items as threads become free: suitable for items of unequal cost.
template <typename Work>
void parallel_items(int64_t n, const Work& work) {
  if (n <= 1 || omp_in_parallel() != 0) {
    for (int64_t i = 0; i < n; ++i) work(i);
    return;
  }
  FirstException exception;
  std::atomic<int64_t> next = 0;
  on_team([&](int64_t, int64_t) {
    for (int64_t i = 0; !exception.thrown() && (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
      exception.guard([&] { work(i); });
    }
  });
  exception.rethrow();
}

}  // namespace plumb
