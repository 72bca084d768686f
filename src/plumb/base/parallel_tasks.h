// Work on all threads that may fail.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

#include "plumb/base/parallel.h"

namespace plumb {

/// As parallel_items, but `work` may throw: no further item is begun then, and the first exception is thrown here.
template <typename Work>
void parallel_tasks(int64_t n, const Work& work) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto failed = [&] {
    const std::scoped_lock lock(mutex);
    return failure != nullptr;
  };
  parallel_items(n, [&](int64_t i) {
    if (failed()) return;
    try {
      work(i);
    } catch (...) {  // no exception may leave a parallel region
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace plumb
