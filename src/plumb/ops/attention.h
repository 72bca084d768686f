// Multi-head softmax attention over ragged batches.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Attention heads: `heads` query heads in groups of equal size; each group shares one of `kv_heads` key-value heads
/// (Ainslie et al. 2023, arXiv 2305.13245; one key-value head: Shazeer 2019, arXiv 1911.02150). Query head h reads
/// key-value head h / group(). Each head has `size` features.
struct HeadShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t size = 0;

  [[nodiscard]] int64_t width() const { return heads * size; }
  [[nodiscard]] int64_t kv_width() const { return kv_heads * size; }
  [[nodiscard]] int64_t group() const { return heads / kv_heads; }
};

/// Throws Error if the groups of heads are uneven.
void check_shape(const HeadShape& shape);

/// Self-attention in each sequence. packed: (tokens, width + 2·kv_width), query, key and value side by side, each
/// ordered by head → (tokens, width). If `causal`, a position sees only itself and earlier positions.
///   out = softmax(q·kᵀ/√size)·v per head (Vaswani et al. 2017, arXiv 1706.03762)
/// This and the functions below throw Error if the rows do not match the layout, the columns do not match `shape`, or
/// the head groups are uneven.
Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal);

/// Attention of target sequences to source sequences. query: (target tokens, width); packed: (source tokens,
/// 2·kv_width), key and value side by side → (target tokens, width); 0 where the source sequence is empty. Throws Error
/// if the two layouts have different numbers of sequences.
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape);

/// Key-value cache for rows that grow, branch and end. Each row stores where its positions are, so reordering rows
/// moves no keys. Only when rows have come to use at most half of the positions, these are copied, and the memory of
/// the others is freed. Small appends, as in decoding, are collected in blocks.
struct CachedKeys {
  struct Place {
    int32_t block, row;
  };
  std::vector<Tensor> blocks;            // (positions, 2·kv_width), key and value side by side
  int64_t filled = 0;                    // positions used in the last block; the rest are uninitialized
  std::vector<std::vector<Place>> rows;  // [row][position]: row `row` of blocks[block]

  /// Appends the positions of sequence r of `layout` to row r. key_value: (tokens, 2·kv_width). The first call creates
  /// the rows; later calls throw Error if the number of sequences differs from the number of rows. So does every call
  /// if there is not one row of key_value per token.
  void append(const Tensor& key_value, const Ragged& layout);

  /// Replaces row i by the previous row order[i]; may change the number of rows.
  void reorder(const std::vector<int64_t>& order);

  [[nodiscard]] int64_t length(int64_t row) const {
    return static_cast<int64_t>(rows[static_cast<size_t>(row)].size());
  }

  /// Contiguous copies of the keys and values, [row]: (length, 2·kv_width).
  [[nodiscard]] std::vector<Tensor> by_row() const;

  /// Memory used by keys, values and their places.
  [[nodiscard]] int64_t bytes() const;

 private:
  /// Starts a new block unless key_value, (positions, 2·kv_width), fits into the last one.
  void make_room(const Tensor& key_value);
  /// If rows refer to at most half of the blocks' positions, copies those into one block that replaces all. Looks only
  /// when the blocks have doubled since it last did, so that a position costs constant time.
  void free_unused();

  int64_t size_when_looked_ = 0;  // positions of all blocks, in use or not
};

/// The queries of sequence r of `layout` over the positions of row r, without an autograd graph. They belong to the
/// last positions of the row; each sees its own position and earlier ones. query: (tokens, width) → (tokens, width).
/// Rows may differ in length. Throws Error if the rows do not match or a row has fewer positions than queries.
Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape);

}  // namespace plumb::ops
