// A ragged batch cut into blocks of equally many positions, for operations that work block by block.
#pragma once

#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Each sequence is cut into blocks of `size` positions, the last one zero-padded. Blocks are ordered by their number
/// within their sequence: the first block of every sequence, longest sequence first, then the second ones, and so on.
/// Blocks with the same number are thus adjacent, and belong to the first sequences.
class Blocks {
 public:
  Blocks(const Ragged& layout, int64_t size);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t sequences() const { return static_cast<int64_t>(order_.size()); }

  /// The number of sequences that have a block number i; one entry per block of the longest sequence.
  [[nodiscard]] const std::vector<int64_t>& sequences_at() const { return sequences_at_; }

  /// [rank]: the sequence.
  [[nodiscard]] const std::vector<int64_t>& order() const { return order_; }

  /// (tokens): the row of each token among blocks·size.
  [[nodiscard]] const std::vector<int64_t>& places() const { return place_; }

  /// x: (tokens, heads, width) → (blocks·heads, size, width); the positions that fill a block have `padding`.
  [[nodiscard]] Tensor cut(const Tensor& x, double padding = 0) const;

  /// The reverse: (blocks·heads, size, width) → (tokens, heads, width).
  [[nodiscard]] Tensor join(const Tensor& blocks, int64_t heads) const;

  /// Permutes per-sequence values, (sequences, …), from the order of the layout to that of the blocks, or back.
  [[nodiscard]] Tensor sorted(const Tensor& by_sequence) const;
  [[nodiscard]] Tensor unsorted(const Tensor& by_rank) const;

  /// x: (count()·each, …), split into the rows of block number 0, 1, …, where each block has `each` rows. It is one
  /// operation whose gradient is a single concatenation: the gradients of separate slices would each fill all of x.
  [[nodiscard]] std::vector<Tensor> by_number(const Tensor& x, int64_t each) const;

  /// Matrices of sequences, (sequences, heads, rows, columns), for each of their blocks → (blocks·heads, rows,
  /// columns).
  [[nodiscard]] Tensor of_sequences(const Tensor& by_sequence) const;

 private:
  int64_t size_;
  int64_t tokens_;
  int64_t count_ = 0;
  std::vector<int64_t> order_;         // [rank]: sequence
  std::vector<int64_t> sequences_at_;  // [block number]
  std::vector<int64_t> place_;         // (tokens): the row of each token among blocks·size
  bool whole_ = false;                 // the rows are those of the layout, in its order
};

/// Positions per block for sequences of this layout and matrices of `features` rows: blocks are small enough that the
/// score matrix within one is cheap, and large enough that there are few matrices.
int64_t block_size(const Ragged& layout, int64_t features);

}  // namespace plumb::ops
