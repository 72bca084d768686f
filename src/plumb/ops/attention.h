// Multi-head softmax attention over ragged batches.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Self-attention of every sequence with itself. packed: (tokens, 3·d) holds query, key, value side by side, each split
/// into `heads` parts of size d/heads → (tokens, d). If `causal`, a position sees itself and what came before.
///   out = softmax(q·kᵀ/√(d/heads))·v per head (Vaswani et al. 2017)
Tensor self_attention(const Tensor& packed, const Ragged& layout, int64_t heads, bool causal);

/// Attention of target sequences to source sequences. query: (target tokens, d); packed: (source tokens, 2·d), key and
/// value side by side. Throws Error if the two layouts differ in their number of sequences.
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       int64_t heads);

/// Keys and values of one more position at a time, of rows that branch and end: row r at position p is row
/// ancestors[p][r] of steps[p], so that a change of rows moves no keys.
struct CachedKeys {
  std::vector<Tensor> steps;                    // [position]: (rows at that time, 2·d), key and value side by side
  std::vector<std::vector<int32_t>> ancestors;  // [position][row]
};

/// One query a row against what the row has seen, without a graph. query: (rows, d) → (rows, d).
Tensor cached_attention(const Tensor& query, const CachedKeys& cache, int64_t heads);

}  // namespace plumb::ops
