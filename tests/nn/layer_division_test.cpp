#include "plumb/nn/layer_division.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/ranks.h"

namespace plumb {
namespace {

/// A matrix of stacked parts with 4, 2 and 2 rows, one whose columns are cut, and one that stays whole.
struct Matrices {
  Parameters parameters{at::kDouble};
  Tensor stacked = parameters.add("stacked", {8, 3}, Role::weight);
  Tensor columns = parameters.add("columns", {3, 4}, Role::weight);
  Tensor same = parameters.add("same", {2}, Role::gain);

  Matrices() {
    parameters.allocate();
    const at::NoGradGuard no_graph;
    parameters.flat().copy_(at::arange(parameters.count(), at::kDouble));
  }
};

TEST(LayerDivision, KeepsTheRowsOfEachPartAndTheColumnsOfThisRankAndPutsThemTogetherAgain) {
  test::as_ranks(2, [](const Group& group) {
    Matrices matrices;
    const Tensor stacked = matrices.stacked.detach().clone(), columns = matrices.columns.detach().clone();
    LayerDivision division(matrices.parameters, group);
    division.divide(matrices.stacked, 0, {4, 2, 2});
    division.divide(matrices.columns, 1);
    division.apply(matrices.parameters);
    const int64_t r = group.rank();
    const Tensor rows = at::tensor(std::vector<int64_t>{2 * r, 2 * r + 1, 4 + r, 6 + r}, at::kLong);
    EXPECT_TRUE(at::equal(matrices.stacked, stacked.index_select(0, rows)));
    EXPECT_TRUE(at::equal(matrices.columns, columns.narrow(1, 2 * r, 2)));
    EXPECT_EQ(matrices.parameters.flat().numel(), 12 + 6 + 2);
    matrices.parameters.flat()[0] = -1;  // the values are views of the flat buffer
    EXPECT_EQ(matrices.stacked[0][0].item<double>(), -1.0);
    EXPECT_TRUE(matrices.stacked.requires_grad());
    const Tensor whole = division.full(0, stacked.index_select(0, rows)), other = division.full(1, matrices.columns);
    ASSERT_EQ(whole.defined(), r == 0);
    if (r > 0) return;
    EXPECT_TRUE(at::equal(whole, stacked));
    EXPECT_TRUE(at::equal(other, columns));
    EXPECT_TRUE(division.is_divided(0) && !division.is_divided(2));
    EXPECT_TRUE(division.full(2, matrices.same).is_same(matrices.same));
  });
}

TEST(LayerDivision, SumsTheGradientsOfWhatActsOnEachHead) {
  test::as_ranks(2, [](const Group& group) {
    Matrices matrices;
    LayerDivision division(matrices.parameters, group);
    division.sum_gradient(matrices.same);
    const auto own = static_cast<double>(1 + group.rank());
    std::vector<Tensor> gradients = {at::full({8, 3}, own), at::full({3, 4}, own), at::full({2}, own)};
    division.sum_gradients(gradients);
    EXPECT_EQ(gradients[0][0][0].item<double>(), own);
    EXPECT_EQ(gradients[2][1].item<double>(), 3.0);
  });
}

TEST(LayerDivision, RefusesSizesThatAreNoMultiplesOfTheRanks) {
  test::as_ranks(2, [](const Group& group) {
    Matrices matrices;
    LayerDivision division(matrices.parameters, group);
    EXPECT_EQ(test::message_of([&] { division.divide(matrices.columns, 0); }),
              "a layer of 3 features or heads cannot be divided among 2 processes");
  });
}

}  // namespace
}  // namespace plumb
