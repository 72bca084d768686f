#include "plumb/ops/index.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
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

std::atomic<bool> asked = false, answered = false;

/// Asks for other indices in another thread while indices are copied, and waits for them.
std::unique_ptr<at::ObserverContext> ask_meanwhile(const at::RecordFunction& function) {
  if (std::string(function.name()) != "aten::to" || asked.exchange(true)) return nullptr;
  const auto done = std::make_shared<std::atomic<bool>>(false);
  std::thread([done] {
    static_cast<void>(index_beside(at::empty({0}, at::TensorOptions().device(at::kMeta)), {71, 72}));
    *done = true;
  }).detach();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!*done && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  answered = done->load();
  return nullptr;
}

TEST(Index, IsFoundWhileAnotherThreadCopiesOne) {
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(&ask_meanwhile).scopes({at::RecordScope::FUNCTION}));
  const Tensor index = index_beside(at::empty({0}, at::TensorOptions().device(at::kMeta)), {61, 62, 63});
  at::removeCallback(handle);
  EXPECT_EQ(index.numel(), 3);
  EXPECT_TRUE(asked);
  EXPECT_TRUE(answered) << "waits for the copy";
}

}  // namespace
}  // namespace plumb::ops
