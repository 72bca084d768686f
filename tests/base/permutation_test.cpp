#include "plumb/base/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace plumb {
namespace {

std::vector<int64_t> elements(const Permutation& permutation, int64_t n) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(permutation(i));
  return all;
}

TEST(Permutation, HasEveryElementOnce) {
  for (const int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 100, 1000, 4097}) {
    const std::vector<int64_t> all = elements(Permutation(n, 7, 3), n);
    const std::set<int64_t> distinct(all.begin(), all.end());
    EXPECT_EQ(std::ssize(distinct), n);
    EXPECT_EQ(*distinct.begin(), 0);
    EXPECT_EQ(*distinct.rbegin(), n - 1);
  }
}

TEST(Permutation, IsAFunctionOfItsArguments) {
  const std::vector<int64_t> all = elements(Permutation(1000, 7, 3), 1000);
  EXPECT_EQ(all, elements(Permutation(1000, 7, 3), 1000));
  EXPECT_NE(all, elements(Permutation(1000, 8, 3), 1000));
  EXPECT_NE(all, elements(Permutation(1000, 7, 4), 1000));
}

// The correlation of index and element in a random permutation has mean 0 and variance 1 / (n − 1).
TEST(Permutation, LeavesNoTraceOfTheOrder) {
  constexpr int64_t kElements = 3000;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Permutation permutation(kElements, seed, 0);
    const double mean = (kElements - 1) / 2.0, variance = (static_cast<double>(kElements) * kElements - 1) / 12.0;
    double covariance = 0;
    for (int64_t i = 0; i < kElements; ++i)
      covariance += (static_cast<double>(i) - mean) * (static_cast<double>(permutation(i)) - mean) / kElements;
    EXPECT_LT(std::abs(covariance / variance), 5 / std::sqrt(kElements - 1.0)) << seed;
  }
}

TEST(Permutation, AcceptsLargeNumbers) {
  constexpr int64_t kElements = 3'000'000'000'000;
  const Permutation permutation(kElements, 1, 1);
  std::set<int64_t> found;
  for (int64_t i = 0; i < 1000; ++i) {
    found.insert(permutation(kElements - 1 - i));
    EXPECT_LT(*found.rbegin(), kElements);
  }
  EXPECT_EQ(found.size(), 1000U);
}

}  // namespace
}  // namespace plumb
