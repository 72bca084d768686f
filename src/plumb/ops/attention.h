// Multi-head softmax attention over ragged batches.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// The heads of an attention: `heads` query heads in groups of equal size, where each group shares one of `kv_heads`
/// key-value heads (Ainslie et al. 2023, arXiv 2305.13245; one key-value head: Shazeer 2019, arXiv 1911.02150). Query
/// head h reads key-value head h / group(). A head has `size` features.
struct HeadShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t size = 0;

  [[nodiscard]] int64_t width() const { return heads * size; }
  [[nodiscard]] int64_t kv_width() const { return kv_heads * size; }
  [[nodiscard]] int64_t group() const { return heads / kv_heads; }
};

/// Self-attention in each sequence. packed: (tokens, width + 2·kv_width), query, key and value side by side, each of
/// them by head → (tokens, width). If `causal`, a position sees itself and earlier positions.
///   out = softmax(q·kᵀ/√size)·v per head (Vaswani et al. 2017, arXiv 1706.03762)
/// Throws Error if the columns of `packed` do not match `shape`, here and below.
Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal);

/// Attention of target sequences to source sequences. query: (target tokens, width); packed: (source tokens,
/// 2·kv_width), key and value side by side → (target tokens, width). Throws Error if the two layouts differ in their
/// number of sequences.
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape);

/// Keys and values of rows that grow, branch and end: each row stores where its positions are, so that reordering rows
/// moves no keys. Few positions at a time, as decoding has them, are collected in blocks.
struct CachedKeys {
  struct Place {
    int32_t block, row;
  };
  std::vector<Tensor> blocks;            // (positions, 2·kv_width), key and value side by side
  int64_t filled = 0;                    // positions of the last block; what follows them is not initialized
  std::vector<std::vector<Place>> rows;  // [row][position]: row `row` of blocks[block]

  /// Further positions: those of sequence r of `layout` are appended to row r. key_value: (tokens, 2·kv_width). Throws
  /// Error if there are rows and their number differs from that of the sequences.
  void append(const Tensor& key_value, const Ragged& layout);

  /// Row i becomes the former row order[i].
  void reorder(const std::vector<int64_t>& order);

  [[nodiscard]] int64_t length(int64_t row) const {
    return static_cast<int64_t>(rows[static_cast<size_t>(row)].size());
  }

  /// The keys and values of each row, [row]: (length, 2·kv_width), copied together.
  [[nodiscard]] std::vector<Tensor> by_row() const;

  /// The memory of keys, values and their places.
  [[nodiscard]] int64_t bytes() const;

 private:
  /// Begins a block unless these positions fit into the last one, (positions, 2·kv_width).
  void make_room(const Tensor& key_value);
};

/// One query per row over all positions of that row, without a graph. query: (rows, width) → (rows, width). Rows may
/// differ in length.
Tensor cached_attention(const Tensor& query, const CachedKeys& cache, const HeadShape& shape);

/// The same for several queries per row. Those of sequence r of `layout` belong to the last positions of row r, and
/// each sees its own position and earlier ones. query: (tokens, width) → (tokens, width). Throws Error if a row has
/// fewer positions than queries.
Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape);

}  // namespace plumb::ops
