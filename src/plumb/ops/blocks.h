// A ragged batch cut into blocks of equally many positions, for operations that work block by block.
#pragma once

#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Each sequence is cut into blocks of `size` positions, the last one filled up with zeros. Blocks stand in the order
/// of their number within their sequence: first the first block of every sequence, longest sequence first, then the
/// second ones, and so on. So those of one number are adjacent, and their sequences are the first ones.
class Blocks {
 public:
  Blocks(const Ragged& layout, int64_t size);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t sequences() const { return static_cast<int64_t>(order_.size()); }

  /// How many sequences have a block number i; as many entries as the longest sequence has blocks.
  [[nodiscard]] const std::vector<int64_t>& sequences_at() const { return sequences_at_; }

  /// x: (tokens, heads, width) → (blocks·heads, size, width), zeros where a block is filled up.
  [[nodiscard]] Tensor cut(const Tensor& x) const;

  /// The reverse: (blocks·heads, size, width) → (tokens, heads, width).
  [[nodiscard]] Tensor join(const Tensor& blocks, int64_t heads) const;

  /// What is given for each sequence in the order of the layout, (sequences, …), in the order of the blocks, or back.
  [[nodiscard]] Tensor sorted(const Tensor& by_sequence) const;
  [[nodiscard]] Tensor unsorted(const Tensor& by_rank) const;

 private:
  int64_t size_;
  int64_t tokens_;
  int64_t count_ = 0;
  std::vector<int64_t> order_;         // [rank]: sequence
  std::vector<int64_t> sequences_at_;  // [block number]
  std::vector<int64_t> place_;         // (tokens): the row of each token among blocks·size
  bool whole_ = false;                 // the rows are those of the layout, in its order
};

/// Positions a block for sequences of this layout and matrices of `features` rows: blocks so small that the score
/// matrix within one costs little, and so large that there are few matrices.
int64_t block_size(const Ragged& layout, int64_t features);

}  // namespace plumb::ops
