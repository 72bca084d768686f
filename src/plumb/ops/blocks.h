// A ragged batch cut into blocks of equal length, for operations that work block by block.
#pragma once

#include <utility>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Each sequence is cut into blocks of `size` positions, the last one padded. Blocks are ordered by their number
/// within their sequence: the first block of every sequence, then the second ones, and so on; sequences with the most
/// blocks come first. Blocks with the same number are thus adjacent, and belong to the first sequences in this order.
class Blocks {
 public:
  Blocks(const Ragged& layout, int64_t size);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t sequences() const { return static_cast<int64_t>(order_.size()); }

  /// [i]: the number of sequences that have a block number i; one entry per block of the longest sequence.
  [[nodiscard]] const std::vector<int64_t>& sequences_at() const { return sequences_at_; }

  /// [rank]: the sequence at this place in the order of the blocks.
  [[nodiscard]] const std::vector<int64_t>& order() const { return order_; }

  /// (tokens): the row of each token among blocks·size.
  [[nodiscard]] const std::vector<int64_t>& places() const { return place_; }

  /// x: (tokens, heads, width) → (blocks·heads, size, width); padding positions have the value `padding`.
  [[nodiscard]] Tensor cut(const Tensor& x, double padding = 0) const;

  /// The reverse: (blocks·heads, size, width) → (tokens, heads, width).
  [[nodiscard]] Tensor join(const Tensor& blocks, int64_t heads) const;

  /// Permute per-sequence values, (sequences, …), from the order of the layout to that of the blocks, and back.
  [[nodiscard]] Tensor sorted(const Tensor& by_sequence) const;
  [[nodiscard]] Tensor unsorted(const Tensor& by_rank) const;

  /// Splits x, (count()·each, …), into the rows of block number 0, 1, …, where each block has `each` rows. A single
  /// operation, whose gradient is one concatenation; the gradient of each separate slice would be as large as x.
  [[nodiscard]] std::vector<Tensor> by_number(const Tensor& x, int64_t each) const;

  /// Repeats per-sequence matrices, (sequences, heads, rows, columns), for each block of the sequence → (blocks·heads,
  /// rows, columns).
  [[nodiscard]] Tensor of_sequences(const Tensor& by_sequence) const;

 private:
  int64_t size_;
  int64_t tokens_;
  int64_t count_ = 0;
  std::vector<int64_t> order_;         // [rank]: sequence
  std::vector<int64_t> sequences_at_;  // [block number]
  std::vector<int64_t> place_;         // (tokens): the row of each token among blocks·size
  bool whole_ = false;                 // no padding, and the rows are in the order of the layout
};

/// States that a pass through the numbers of blocks carries from one to the next: the rows of a matrix, by rank.
class RunningStates {
 public:
  explicit RunningStates(Tensor start) : states_(std::move(start)) {}

  /// The first `rows` states, which go on; the others are final.
  const Tensor& first(int64_t rows);
  /// Replaces those.
  void set(Tensor states) { states_ = std::move(states); }
  /// All of them, by rank.
  [[nodiscard]] Tensor last() const;

 private:
  Tensor states_;
  std::vector<Tensor> ended_;  // highest ranks first
};

/// Positions per block for sequences of this layout and matrices of `features` rows: small enough that the score matrix
/// of a block is cheap, and large enough that there are few matrices.
int64_t block_size(const Ragged& layout, int64_t features);

}  // namespace plumb::ops
