#include "plumb/ops/gram_schmidt_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

#include "plumb/ops/gram_schmidt.h"

namespace plumb {
namespace {

template <typename T>
class GramSchmidt : public ::testing::Test {
 protected:
  static constexpr at::ScalarType kType = std::is_same_v<T, float> ? at::kFloat : at::kDouble;
  static constexpr double kEpsilon = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;

  void SetUp() override { at::manual_seed(1); }

  /// In ranges of `grain`, from the last one on.
  static ops::Ranges ranges(int64_t grain) {
    return [grain](int64_t count, const auto& work) {
      for (int64_t begin = (count - 1) / grain * grain; begin >= 0; begin -= grain)
        work(begin, std::min(begin + grain, count));
    };
  }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GramSchmidt, Types);

// Six vectors: four at a time, then two. Up to several blocks in each part.
TYPED_TEST(GramSchmidt, SubtractsAndMultiplies) {
  using T = TypeParam;
  constexpr size_t kVectors = 6;
  const std::vector<double> factors = {0.5, -1.25, 2.0, 0.25, -0.75, 1.5};
  for (const int64_t n : {1, 37, 1024, 5000, 140'000}) {
    const Tensor basis = at::randn({kVectors, n}, this->kType), w = at::randn({n}, this->kType);
    std::vector<const T*> vectors;
    for (size_t k = 0; k < kVectors; ++k) vectors.push_back(basis[static_cast<int64_t>(k)].template data_ptr<T>());
    for (const bool subtract : {false, true}) {
      const std::vector<double> subtracted = subtract ? factors : std::vector<double>();
      const Tensor whole = at::full({n + 2}, -777, this->kType), found = whole.narrow(0, 1, n).copy_(w);
      const std::vector<double> sums =
          ops::gram_schmidt_pass<T>(vectors, subtracted, true, n, found.data_ptr<T>(), this->ranges(64));
      EXPECT_EQ(whole[0].item<double>(), -777);
      EXPECT_EQ(whole[n + 1].item<double>(), -777);
      Tensor expected = w.to(at::kDouble);
      if (subtract) expected = expected - at::mv(basis.to(at::kDouble).t(), at::tensor(factors, at::kDouble));
      EXPECT_LE((found.to(at::kDouble) - expected).abs().max().item<double>(), 200 * this->kEpsilon);
      // The sums use w as stored, in float64 for either type. In any order of addition, the error of a sum of N terms
      // is at most (N − 1)·2⁻⁵³·Σ|terms|, plus 2⁻⁵³ of each product; two sums are compared.
      const Tensor stored = found.to(at::kDouble);
      const Tensor factor = at::cat({basis.to(at::kDouble), stored.unsqueeze(0)}, 0);
      for (size_t k = 0; k <= kVectors; ++k) {
        const Tensor terms = factor[static_cast<int64_t>(k)] * stored;
        EXPECT_NEAR(sums[k], terms.sum().template item<double>(),
                    2 * static_cast<double>(n + 1) * 0x1p-53 * terms.abs().sum().template item<double>());
      }
      for (const int64_t grain : {1, 7}) {
        const Tensor again = w.clone();
        EXPECT_EQ(ops::gram_schmidt_pass<T>(vectors, subtracted, true, n, again.data_ptr<T>(), this->ranges(grain)),
                  sums);
        EXPECT_TRUE(again.equal(found));
      }
      Tensor front = w.clone();
      EXPECT_EQ(ops::gram_schmidt(basis.unbind(0), subtracted, true, front), sums);
      EXPECT_TRUE(front.equal(found));
      const std::vector<double> without = ops::gram_schmidt(basis.unbind(0), {}, false, front);
      EXPECT_EQ(std::count(without.begin(), without.end() - 1, 0.0), 6);
      EXPECT_EQ(without.back(), sums.back());
    }
  }
}

// Other types are computed by LibTorch's operations.
TEST(GramSchmidtOfTensors, RoundsToTheirType) {
  const Tensor v = at::tensor({1.0, 2.0, 2.0}).to(at::kBFloat16);
  Tensor w = at::tensor({3.0, 3.0, 0.0}).to(at::kBFloat16);
  EXPECT_EQ(ops::gram_schmidt({v}, {}, true, w), (std::vector<double>{9, 18}));
  EXPECT_EQ(ops::gram_schmidt({v}, {1.0}, true, w), (std::vector<double>{0, 9}));
  EXPECT_TRUE(w.equal(at::tensor({2.0, 1.0, -2.0}).to(at::kBFloat16)));
}

}  // namespace
}  // namespace plumb
