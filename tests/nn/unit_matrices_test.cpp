// Matrices of vectors of length 1.
#include "plumb/nn/unit_matrices.h"

#include <gtest/gtest.h>

#include "support/gradcheck.h"

namespace plumb {
namespace {

TEST(UnitMatrices, HaveVectorsOfLengthOneAlongTheModelsWidth) {
  Parameters parameters(at::kDouble);
  constexpr int64_t kModel = 5, kOther = 7;
  const std::vector<Role> rows = {Role::weight, Role::stacked_qkv, Role::feed_forward_input, Role::embedding,
                                  Role::readout};
  const std::vector<Role> columns = {Role::attention_output, Role::feed_forward_output};
  std::vector<Tensor> by_row, by_column;
  for (const Role role : rows) by_row.push_back(parameters.add(std::to_string(by_row.size()), {kOther, kModel}, role));
  for (const Role role : columns)
    by_column.push_back(parameters.add("c" + std::to_string(by_column.size()), {kModel, kOther}, role));
  const Tensor gain = parameters.add("gain", {kModel}, Role::gain);
  const Tensor table = parameters.add("position", {kOther, kModel}, Role::position);
  const Tensor constant = parameters.add_constant("constant", {kOther, kModel}, 1);
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 1));
  by_row[1].detach()[3].zero_();
  const Tensor before = parameters.flat().clone();
  normalize_matrices(parameters, {true});  // the first is frozen

  const std::vector<Tensor> old = parameters.split(before);
  EXPECT_TRUE(by_row[0].equal(old[0]));
  for (size_t i = 1; i < by_row.size(); ++i) {
    for (int64_t r = 0; r < kOther; ++r) {
      const Tensor was = old[i][r];
      const Tensor expected = i == 1 && r == 3 ? was : was / was.norm();
      EXPECT_LT((by_row[i][r] - expected).abs().max().item<double>(), 1e-15) << i << " " << r;
    }
  }
  for (size_t i = 0; i < by_column.size(); ++i) {
    for (int64_t c = 0; c < kOther; ++c) {
      const Tensor was = old[by_row.size() + i].select(1, c);
      EXPECT_LT((by_column[i].select(1, c) - was / was.norm()).abs().max().item<double>(), 1e-15) << i << " " << c;
    }
  }
  EXPECT_TRUE(gain.equal(old[7]));
  EXPECT_TRUE(table.equal(old[8]));
  EXPECT_TRUE(constant.equal(old[9]));
}

}  // namespace
}  // namespace plumb
