// Tensor memory: freed blocks are reused, and adjacent freed blocks are merged.
#include "plumb/ops/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plumb/ops/torch.h"

namespace plumb {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

Tensor block(int64_t bytes) { return at::empty({bytes}, at::kByte); }

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the address sanitizer keeps its own allocator";
#endif
    ops::keep_tensor_memory();
  }
};

TEST_F(Memory, IsTakenAgainWhereItWasFreed) {
  Tensor first = block(3 * kMebibyte);
  const Tensor fence = block(kMebibyte);
  const void* place = first.data_ptr();
  first = Tensor();
  EXPECT_EQ(block(3 * kMebibyte).data_ptr(), place);
  EXPECT_EQ(block(2 * kMebibyte).data_ptr(), place);
}

TEST_F(Memory, OfFreedNeighborsBecomesOneBlock) {
  std::vector<Tensor> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(block(5 * kMebibyte));
  const Tensor fence = block(5 * kMebibyte);
  std::vector<void*> places;
  for (const Tensor& b : blocks) places.push_back(b.data_ptr());
  std::sort(places.begin(), places.end());
  ASSERT_EQ(static_cast<char*>(places[2]) - static_cast<char*>(places[0]), 10 * kMebibyte);
  for (const int i : {0, 2, 1}) blocks[static_cast<size_t>(i)] = Tensor();
  EXPECT_EQ(block(15 * kMebibyte).data_ptr(), places[0]);
}

TEST_F(Memory, OfTheSmallestBlockThatSufficesIsTaken) {
  Tensor large = block(9 * kMebibyte);
  const Tensor fence1 = block(kMebibyte);
  Tensor small = block(7 * kMebibyte);
  const Tensor fence2 = block(kMebibyte);
  const void* place = small.data_ptr();
  large = Tensor();
  small = Tensor();
  EXPECT_EQ(block(7 * kMebibyte - 4096).data_ptr(), place);
}

TEST_F(Memory, IsCounted) {
  const int64_t before = ops::memory_in_use();
  Tensor held = block(64 * kMebibyte);
  EXPECT_NEAR(static_cast<double>(ops::memory_in_use() - before), 64.0 * kMebibyte, 1.0 * kMebibyte);
  held = Tensor();
  EXPECT_NEAR(static_cast<double>(ops::memory_in_use() - before), 0.0, 1.0 * kMebibyte);
}

}  // namespace
}  // namespace plumb
