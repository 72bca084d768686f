// Parallel work in which some threads fail, and the lifetime of the threads themselves.
#include "plumb/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace plumb {
namespace {

TEST(ParallelItems, DoesEveryItemOnce) {
  std::vector<std::atomic<int>> done(100);
  parallel_items(100, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
  parallel_items(0, [](int64_t) { FAIL(); });
}

TEST(ParallelRanges, CoverEverythingOnce) {
  for (const int64_t n : {0, 1, 7, 100}) {
    for (const int64_t grain : {0, 1, 30, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(n));
      parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
      });
      for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
    }
  }
}

/// Sets the number of threads until the test ends.
class ParallelFailures : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { omp_set_num_threads(GetParam()); }
  void TearDown() override { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};

TEST_P(ParallelFailures, EndTheWorkAndArrive) {
  for (const int64_t items : {1, 1000}) {
    std::atomic<int64_t> begun = 0;
    try {
      parallel_items(items, [&](int64_t i) {
        ++begun;
        throw std::runtime_error("item " + std::to_string(i));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("item "));
    }
    EXPECT_LE(begun, GetParam());
  }
}

TEST_P(ParallelFailures, OfARangeArrive) {
  for (const int64_t last : {0, 999}) {
    const auto work = [last](int64_t begin, int64_t end) {
      if (begin <= last && last < end) throw std::runtime_error("out of luck");
    };
    EXPECT_THROW(parallel_ranges(1000, 1, work), std::runtime_error);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelFailures, ::testing::Values(1, 2, 4));

/// Counts the threads that end.
struct Farewell {
  ~Farewell() { ++ended; }
  static inline std::atomic<int> ended = 0;
};
void meet() {
  static thread_local Farewell farewell;
  (void)farewell;
}

TEST(ParallelThreads, OutliveSmallWork) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(4);
  for (int i = 0; i < 100; ++i) {
    parallel_ranges(4, 1, [](int64_t, int64_t) { meet(); });
    parallel_ranges(2, 1, [](int64_t, int64_t) { meet(); });
    parallel_items(2, [](int64_t) { meet(); });
  }
  EXPECT_EQ(Farewell::ended, 0);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace plumb
