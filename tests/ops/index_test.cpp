#include "plumb/ops/index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace plumb::ops {
namespace {

/// Off the CPU, indices are cached, for all threads together.
TEST(Index, OfAnotherDeviceIsForManyThreads) {
  const Tensor like = at::empty({0}, at::TensorOptions().device(at::kMeta));
  std::atomic<int> wrong = 0;
  const auto ask = [&](int64_t first) {
    for (int64_t i = 0; i < 20'000; ++i) {
      const std::vector<int64_t> ids(static_cast<size_t>(1 + i % 7), first + i % 300);
      const Tensor index = index_beside(like, ids);
      wrong += !index.is_meta() || index.numel() != 1 + i % 7;
    }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) threads.emplace_back(ask, 100 * i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace plumb::ops
