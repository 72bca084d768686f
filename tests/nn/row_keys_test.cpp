// Growing rows of keys and values, compared with what was appended to each.
#include "plumb/nn/attention/row_keys.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

/// RowKeys, and each row as one matrix made by concatenation.
class Rows {
 public:
  explicit Rows(int64_t rows) : keys_(rows), seen_(static_cast<size_t>(rows)) {}

  void append(const std::vector<int64_t>& lengths) {
    const Ragged layout(lengths);
    const Tensor added = testing::random_tensor({layout.tokens(), 6}, ++appended_);
    keys_.append(added, layout);
    for (size_t r = 0; r < seen_.size(); ++r) {
      const auto row = static_cast<int64_t>(r);
      const Tensor more = added.narrow(0, layout.begin(row), layout.length(row));
      seen_[r] = seen_[r].defined() ? at::cat({seen_[r], more}, 0) : more;
    }
    expect_contents();
  }

  void reorder(const std::vector<int64_t>& order) {
    keys_.reorder(order);
    std::vector<Tensor> moved;
    for (const int64_t row : order) moved.push_back(seen_[static_cast<size_t>(row)]);
    seen_ = moved;
    expect_contents();
  }

 private:
  void expect_contents() const {
    for (size_t r = 0; r < seen_.size(); ++r) {
      if (seen_[r].size(0) > 0) {
        EXPECT_TRUE(keys_.row(static_cast<int64_t>(r)).equal(seen_[r])) << "row " << r;
      }
    }
  }

  RowKeys keys_;
  std::vector<Tensor> seen_;
  uint64_t appended_ = 0;
};

TEST(RowKeys, GrowBranchAndEnd) {
  Rows rows(3);
  rows.append({4, 0, 70});
  rows.append({1, 2, 1});
  rows.reorder({2, 2, 0, 2, 1});  // branches write to separate memory
  for (int i = 0; i < 80; ++i) rows.append({1, 1, 0, 2, 1});
  rows.reorder({3, 0});
  rows.append({1, 1});
  rows.reorder({1, 1});
  rows.reorder({0});
  rows.append({100});
}

TEST(RowKeys, AFullRowGrowsByAQuarter) {
  RowKeys keys(1);
  const Tensor one = testing::random_tensor({1, 4}, 1);
  int64_t sizes = 0;
  int64_t before = 0;
  constexpr int64_t kPositions = 5000;
  for (int64_t i = 0; i < kPositions; ++i) {
    keys.append(one, Ragged({1}));
    sizes += keys.bytes() != before ? 1 : 0;
    before = keys.bytes();
  }
  EXPECT_LE(sizes, 45);  // 1.25^38 is about 5,000
  EXPECT_LE(before, 2 * kPositions * static_cast<int64_t>(one.nbytes()));
}

TEST(RowKeys, BranchesShareWhatTheyHaveInCommon) {
  RowKeys keys(1);
  keys.append(testing::random_tensor({500, 6}, 1), Ragged({500}));
  keys.reorder({0, 0, 0});
  EXPECT_EQ(keys.row(0).data_ptr<double>(), keys.row(2).data_ptr<double>());
  const Tensor added = testing::random_tensor({6, 6}, 2);
  keys.append(added, Ragged({1, 2, 3}));
  EXPECT_TRUE(keys.row(1).narrow(0, 500, 2).equal(added.narrow(0, 1, 2)));
  EXPECT_TRUE(keys.row(2).narrow(0, 500, 3).equal(added.narrow(0, 3, 3)));
}

/// As in beam search when one parent has all children.
TEST(RowKeys, MayBranchAtEveryStep) {
  Rows rows(3);
  rows.append({2, 2, 2});
  for (int step = 0; step < 40; ++step) {
    rows.append({1, 1, 1});
    rows.reorder({step % 3, step % 3, step % 3});
  }
}

TEST(RowKeys, RefusesRowsThatDoNotFit) {
  RowKeys keys(2);
  EXPECT_THROW(keys.append(testing::random_tensor({3, 4}, 1), Ragged({1, 1, 1})), Error);
}

}  // namespace
}  // namespace plumb
