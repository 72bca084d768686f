// Pooling against loops, and its gradients.
#include "plumb/nn/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/gradcheck.h"

namespace plumb::pooling_test {
namespace {

using testing::random_tensor;

const Ragged kLayout({3, 1, 4});
constexpr int64_t kWidth = 2;

TEST(Pooling, EveryKindIsItsDefinition) {
  const Tensor x = random_tensor({8, kWidth}, 1);
  for (int64_t s = 0; s < kLayout.sequences(); ++s) {
    for (int64_t j = 0; j < kWidth; ++j) {
      std::vector<double> column;
      for (int64_t t = kLayout.begin(s); t < kLayout.begin(s + 1); ++t) column.push_back(x[t][j].item<double>());
      const auto found = [&](const char* kind) { return poolings().at(kind).make(x, kLayout)[s][j].item<double>(); };
      double sum = 0;
      for (const double value : column) sum += value;
      EXPECT_EQ(found("first"), column.front());
      EXPECT_EQ(found("last"), column.back());
      EXPECT_NEAR(found("mean"), sum / static_cast<double>(column.size()), 1e-15);
      EXPECT_EQ(found("max"), *std::max_element(column.begin(), column.end()));
      const Tensor concat = poolings().at("concat").make(x, kLayout)[s];
      ASSERT_EQ(concat.numel(), 3 * kWidth);
      EXPECT_EQ(concat[j].item<double>(), found("last"));
      EXPECT_EQ(concat[kWidth + j].item<double>(), found("max"));
      EXPECT_EQ(concat[2 * kWidth + j].item<double>(), found("mean"));
    }
  }
  EXPECT_TRUE(at::equal(poolings().at("none").make(x, kLayout), x));
}

TEST(Pooling, EveryKindHasGradientsAndSecondOnes) {
  for (const auto& [name, entry] : poolings().entries()) {
    SCOPED_TRACE(name);
    testing::expect_both(
        [&, &pool = entry.make](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{pool(in[0] * in[0], kLayout)};
        },
        {random_tensor({8, kWidth}, 1)});
  }
}

}  // namespace
}  // namespace plumb::pooling_test
