// Attention over cached keys, and invalid arguments.
#include "plumb/ops/attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "plumb/base/error.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/threads.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using ops::HeadShape;
using testing::random_tensor;

constexpr HeadShape kShapes[] = {{2, 2, 5}, {6, 2, 3}, {4, 1, 8}};

/// Growing sequences: all positions of each row so far, (tokens, width + 2·kv_width), and the same in a cache.
class Rows {
 public:
  Rows(const HeadShape& shape, int64_t rows) : shape_(shape), seen_(static_cast<size_t>(rows)) {}

  /// Appends new positions to the cache and compares their results with causal attention over whole sequences.
  void read(const std::vector<int64_t>& lengths) {
    const Ragged layout(lengths);
    const Tensor packed = random_tensor({layout.tokens(), shape_.width() + 2 * shape_.kv_width()}, ++reads_);
    const Tensor query = packed.narrow(1, 0, shape_.width()).contiguous();
    cache_.append(packed.narrow(1, shape_.width(), 2 * shape_.kv_width()).contiguous(), layout);
    const Tensor found = ops::cached_attention(query, layout, cache_, shape_);
    ASSERT_EQ(found.sizes(), query.sizes());
    for (int64_t r = 0; r < layout.sequences(); ++r) {
      Tensor& all = seen_[static_cast<size_t>(r)];
      const Tensor added = packed.narrow(0, layout.begin(r), layout.length(r));
      all = all.defined() ? at::cat({all, added}, 0) : added;
      ASSERT_EQ(cache_.length(r), all.size(0));
      const Tensor whole = ops::self_attention(all, Ragged({all.size(0)}), shape_, /*causal=*/true);
      const Tensor expected = whole.narrow(0, all.size(0) - layout.length(r), layout.length(r));
      const Tensor difference = found.narrow(0, layout.begin(r), layout.length(r)) - expected;
      if (difference.numel() == 0) continue;
      EXPECT_LT(difference.abs().max().item<double>(), 1e-13) << "row " << r;
    }
  }

  void reorder(const std::vector<int64_t>& order) {
    cache_.reorder(order);
    std::vector<Tensor> moved;
    for (const int64_t row : order) moved.push_back(seen_[static_cast<size_t>(row)]);
    seen_ = moved;
  }

  void expect_contents() const {
    const std::vector<Tensor> rows = cache_.by_row();
    ASSERT_EQ(rows.size(), seen_.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      EXPECT_TRUE(rows[r].equal(seen_[r].narrow(1, shape_.width(), 2 * shape_.kv_width())));
    }
  }

  [[nodiscard]] int64_t blocks() const { return std::ssize(cache_.blocks); }
  /// The positions that blocks have memory for.
  [[nodiscard]] int64_t positions() const {
    int64_t sum = 0;
    for (const Tensor& block : cache_.blocks) sum += block.size(0);
    return sum;
  }

 private:
  HeadShape shape_;
  std::vector<Tensor> seen_;
  ops::CachedKeys cache_;
  uint64_t reads_ = 0;
};

TEST(CachedAttention, IsCausalAttentionOverWholeSequences) {
  for (const HeadShape& shape : kShapes) {
    SCOPED_TRACE(::testing::Message() << shape.heads << " heads, " << shape.kv_heads << " key-value heads");
    Rows rows(shape, 4);
    rows.read({3, 1, 7, 2});  // prompts of different lengths
    rows.read({1, 1, 1, 1});
    rows.read({2, 0, 5, 1});  // a row may get no positions
    rows.reorder({2, 2, 0, 3, 1});
    rows.expect_contents();
    rows.read({1, 1, 1, 1, 1});
    rows.reorder({4, 0, 1});
    rows.read({1, 2, 1});
    rows.expect_contents();
  }
}

TEST(CachedAttention, TokensAreCollectedInBlocks) {
  Rows rows({4, 2, 8}, 2);
  rows.read({3, 70});  // becomes a block of its own
  for (int i = 0; i < 75; ++i) rows.read({1, 1});
  rows.reorder({1, 0, 1});
  for (int i = 0; i < 30; ++i) rows.read({1, 1, 1});
  rows.read({90, 1, 0});
  rows.read({1, 1, 1});
  rows.expect_contents();
  EXPECT_LE(rows.blocks(), 8);  // after 108 reads
}

// As in a beam search, whose hypotheses soon have a common past.
TEST(CachedAttention, PositionsOfEndedRowsAreFreed) {
  constexpr int64_t kRows = 24, kSteps = 100;  // 2,400 positions, of which the last rows use about 100
  Rows rows({2, 1, 4}, kRows);
  const std::vector<int64_t> one_each(kRows, 1);
  for (int64_t step = 0; step < kSteps; ++step) {
    rows.read(one_each);
    std::vector<int64_t> order(kRows, step % kRows);
    order[1] = (step + 1) % kRows;
    rows.reorder(order);
  }
  rows.expect_contents();
  EXPECT_LE(rows.positions(), 1100);
  rows.read(one_each);
  rows.expect_contents();
}

TEST(CachedAttention, HeadsOfOneTokenAreDividedAmongThreads) {
  const int threads = omp_get_max_threads();
  const HeadShape shape{6, 3, 64};
  const Tensor keys = random_tensor({2000, 2 * shape.kv_width()}, 1);
  const Tensor query = random_tensor({1, shape.width()}, 2);
  ops::CachedKeys cache;
  cache.append(keys, Ragged({2000}));
  ops::set_threads(1);
  const Tensor alone = ops::cached_attention(query, Ragged({1}), cache, shape);
  ops::set_threads(3);
  EXPECT_TRUE(ops::cached_attention(query, Ragged({1}), cache, shape).equal(alone));
  ops::set_threads(threads);
}

TEST(CachedAttention, NoMemoryIsLeftBetweenSteps) {
  constexpr int64_t kRows = 33, kSteps = 9;
  const Tensor step = random_tensor({kRows, 6}, 1);
  ops::CachedKeys cache;
  for (int i = 0; i < kSteps; ++i) cache.append(step, Ragged(std::vector<int64_t>(kRows, 1)));
  const auto places = kSteps * kRows * static_cast<int64_t>(sizeof(ops::CachedKeys::Place));
  EXPECT_EQ(cache.bytes(), kSteps * static_cast<int64_t>(step.nbytes()) + places);
}

TEST(CachedAttention, RefusesRowsThatDoNotFit) {
  const HeadShape shape{2, 1, 3};
  const auto values = [](int64_t rows, int64_t columns) { return random_tensor({rows, columns}, 1); };
  ops::CachedKeys cache;
  cache.append(values(3, 6), Ragged({2, 1}));
  EXPECT_THROW(cache.append(values(3, 6), Ragged({1, 1, 1})), Error);
  EXPECT_THROW(cache.append(values(1, 6), Ragged({1, 1})), Error) << "fewer rows than positions";
  EXPECT_THROW(ops::cached_attention(values(3, 6), Ragged({1, 1, 1}), cache, shape), Error) << "another number of rows";
  EXPECT_THROW(ops::cached_attention(values(3, 6), Ragged({1, 2}), cache, shape), Error) << "more than a row has";
  EXPECT_THROW(ops::cached_attention(values(2, 5), Ragged({1, 1}), cache, shape), Error) << "another width";
  EXPECT_THROW(ops::cached_attention(values(2, 6), Ragged({1, 1}), cache, {2, 2, 3}), Error) << "keys of another width";
}

TEST(Attention, WithoutKeysGivesZeros) {
  const HeadShape shape{2, 1, 3};
  const Ragged keys({0, 3});
  for (const int64_t length : {2, 9}) {  // the kernels treat a few queries differently
    const Ragged queries({length, 2});
    for (const auto& operation : {&ops::cross_attention, &ops::reference::cross_attention}) {
      const Tensor query = random_tensor({queries.tokens(), 6}, 1).requires_grad_();
      const Tensor packed = random_tensor({3, 6}, 2).requires_grad_();
      const Tensor out = operation(query, packed, queries, keys, shape);
      EXPECT_TRUE((out.narrow(0, 0, length) == 0).all().item<bool>());
      EXPECT_FALSE(out.isnan().any().item<bool>());
      const std::vector<Tensor> first = gradients({out.sum()}, {query, packed}, {});
      EXPECT_TRUE((first[0].narrow(0, 0, length) == 0).all().item<bool>());
      EXPECT_FALSE(first[1].isnan().any().item<bool>());
    }
  }
}

TEST(Attention, RefusesHeadsThatDoNotFit) {
  const Ragged layout({2, 3});
  const Tensor packed = random_tensor({5, 12}, 1);
  EXPECT_NO_THROW(ops::self_attention(packed, layout, {4, 1, 2}, true));
  EXPECT_THROW(ops::self_attention(packed, layout, {2, 1, 2}, true), Error) << "columns";
  EXPECT_THROW(ops::self_attention(packed, layout, {3, 2, 2}, true), Error) << "groups";
  EXPECT_THROW(ops::cross_attention(packed, packed, layout, Ragged({5}), {6, 3, 2}), Error) << "sequences";
  EXPECT_THROW(ops::cross_attention(packed, packed, layout, layout, {6, 2, 2}), Error) << "columns of keys";
  EXPECT_THROW(ops::self_attention(packed, Ragged({2, 4}), {4, 1, 2}, true), Error) << "rows";
  EXPECT_THROW(ops::cross_attention(packed, packed, layout, Ragged({3, 3}), {6, 3, 2}), Error) << "rows of keys";
}

}  // namespace
}  // namespace plumb
