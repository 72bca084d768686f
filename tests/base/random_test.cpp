#include "plumb/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plumb {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that the authors of the generator published (Random123, kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}), (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox(0x299F31D0'A4093822, 0x03707344'13198A2E, 0x85A308D3'243F6A88),
            (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(StreamOf, IsFnv1a) {
  EXPECT_EQ(stream_of(""), 0xCBF29CE484222325);
  EXPECT_EQ(stream_of("a"), 0xAF63DC4C8601EC8C);
  EXPECT_EQ(stream_of("foobar"), 0x85944171F73967E8);
}

TEST(Random, WalksTheCountersOfItsStream) {
  Random random(7, 9);
  const Words first = philox(7, 9, 0);
  const Words second = philox(7, 9, 1);
  for (const uint32_t word : first) EXPECT_EQ(random.next(), word);
  for (const uint32_t word : second) EXPECT_EQ(random.next(), word);
}

TEST(Random, DiffersBySeedAndByStream) {
  const auto first = [](Random random) { return random.next(); };
  EXPECT_EQ(first(Random(1, "dropout")), first(Random(1, "dropout")));
  EXPECT_NE(first(Random(1, "dropout")), first(Random(2, "dropout")));
  EXPECT_NE(first(Random(1, "dropout")), first(Random(1, "shuffle")));
}

TEST(Random, UniformHasItsMomentsAndStaysInItsInterval) {
  Random random(1, "uniform");
  constexpr int kDraws = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 0.004);  // more than four standard errors
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.004);
}

TEST(Random, NormalHasItsMomentsAndTails) {
  Random random(1, "normal");
  constexpr int kDraws = 100'000;
  double moments[5] = {};
  int outside = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    for (int k = 1; k < 5; ++k) moments[k] += std::pow(value, k) / kDraws;
    outside += std::abs(value) > 1.959964 ? 1 : 0;
  }
  EXPECT_NEAR(moments[1], 0, 0.014);
  EXPECT_NEAR(moments[2], 1, 0.02);
  EXPECT_NEAR(moments[3], 0, 0.05);
  EXPECT_NEAR(moments[4], 3, 0.13);
  EXPECT_NEAR(outside, 0.05 * kDraws, 300);
}

TEST(Random, BelowReachesEveryValueEquallyOften) {
  Random random(3, "below");
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, ShufflePermutesAndEveryPlaceIsEquallyLikely) {
  Random random(4, "shuffle");
  int first_place[4] = {};
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> items = {0, 1, 2, 3};
    random.shuffle(items);
    ++first_place[items[0]];
    std::sort(items.begin(), items.end());
    ASSERT_EQ(items, (std::vector<int>{0, 1, 2, 3}));
  }
  for (const int count : first_place) EXPECT_NEAR(count, 6'000, 280);
}

}  // namespace
}  // namespace plumb
