// Work on all threads that fails.
#include "plumb/base/parallel_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace plumb {
namespace {

TEST(ParallelTasks, DoesEveryItemOnce) {
  std::vector<std::atomic<int>> done(100);
  parallel_tasks(100, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
  parallel_tasks(0, [](int64_t) { FAIL(); });
}

TEST(ParallelTasks, AnExceptionArrivesAndEndsTheWork) {
  for (const int64_t items : {1, 1000}) {
    std::atomic<int64_t> begun = 0;
    try {
      parallel_tasks(items, [&](int64_t i) {
        ++begun;
        throw std::runtime_error("item " + std::to_string(i));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("item "));
    }
    EXPECT_LE(begun, omp_get_max_threads());
  }
}

}  // namespace
}  // namespace plumb
