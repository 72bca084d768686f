// Dropout of a subset of a matrix's rows equals those rows of the dropout of the whole matrix.
#include "plumb/ops/dropout.h"

#include <gtest/gtest.h>

#include "plumb/ops/implementations.h"
#include "support/gradcheck.h"
#include "support/reference.h"

namespace plumb {
namespace {

constexpr double kP = 0.3;
constexpr uint32_t kKeepBelow = 45875;  // 0.7 · 65536, rounded

/// Unordered rows of a matrix of 400 rows, in runs of different lengths.
const std::vector<RowRun> kRuns = {{0, 77}, {13, 5}, {14, 300}, {14, 20}, {60, 21}, {61, 390}};
constexpr int64_t kRows = 70;

/// The definition: an element is dropped according to its position in the whole matrix.
Tensor expected_factor(const ops::DropoutKey& key, int64_t width) {
  std::vector<Tensor> rows;
  size_t run = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    while (run + 1 < kRuns.size() && kRuns[run + 1].begin <= row) ++run;
    const int64_t place = kRuns[run].origin + row - kRuns[run].begin;
    rows.push_back(at::tensor(reference::dropout_mask(key.seed, key.stream, kKeepBelow, place * width, width)));
  }
  return at::stack(rows).to(at::kDouble) * (65536.0 / kKeepBelow);
}

TEST(DropoutOfAPart, IsThatPartOfTheWhole) {
  for (const int64_t width : {1, 5, 8, 67, 256, 1030}) {
    const ops::DropoutKey key{12345678901234567, 98765432109876543, kRuns};
    const Tensor x = at::rand({kRows, width}, at::kDouble) + 1, residual = at::rand({kRows, width}, at::kDouble);
    const Tensor factor = expected_factor(key, width);
    for (const auto& operation : {&ops::add_dropout, &ops::reference::add_dropout}) {
      EXPECT_TRUE(at::allclose(operation(residual, x, kP, key), residual + factor * x, 0, 1e-14)) << width;
      const Tensor input = x.clone().requires_grad_();
      const Tensor weights = at::rand({kRows, width}, at::kDouble);
      const Tensor first =
          gradients({(operation(residual, input.square(), kP, key) * weights).sum()}, {input}, {}, true)[0];
      EXPECT_TRUE(at::allclose(first, 2 * factor * x * weights, 0, 1e-13)) << width;
      const Tensor second = gradients({(first * weights).sum()}, {input}, {})[0];
      EXPECT_TRUE(at::allclose(second, 2 * factor * weights * weights, 0, 1e-13)) << width;
    }
  }
}

TEST(DropoutOfAPart, MayBeEmpty) {
  const ops::DropoutKey key{1, 2, {{0, 5}}};
  EXPECT_EQ(ops::dropout(at::zeros({0, 4}), kP, key).numel(), 0);
  EXPECT_EQ(ops::reference::add_dropout(Tensor(), at::zeros({0, 4}), kP, key).numel(), 0);
}

}  // namespace
}  // namespace plumb
