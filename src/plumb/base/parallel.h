// The one thread pool: OpenMP's.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace plumb {

/// Splits [0, n) into one contiguous range per thread and calls `work(begin, end)` for each. Ranges shorter than
/// `grain` are not split, so that small work stays on one thread. Safe to call from within another parallel region.
template <typename Work>
void parallel_ranges(int64_t n, int64_t grain, const Work& work) {
  const int64_t wanted = std::min<int64_t>(omp_get_max_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (wanted <= 1 || omp_in_parallel() != 0) {
    if (n > 0) work(int64_t{0}, n);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(wanted))
  {
    const int64_t threads = omp_get_num_threads();
    const int64_t thread = omp_get_thread_num();
    const int64_t begin = n * thread / threads;
    const int64_t end = n * (thread + 1) / threads;
    if (begin < end) work(begin, end);
  }
}

/// Calls `work(i)` for every i in [0, n), assigning items as threads become free: for items of unequal cost.
template <typename Work>
void parallel_items(int64_t n, const Work& work) {
  if (n <= 1 || omp_in_parallel() != 0) {
    for (int64_t i = 0; i < n; ++i) work(i);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < n; ++i) work(i);
}

}  // namespace plumb
