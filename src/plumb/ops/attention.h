// Multi-head softmax attention over ragged batches.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Self-attention of every sequence with itself. packed: (tokens, 3·d) holds query, key, value side by side, each split
/// into `heads` parts of size d/heads → (tokens, d). If `causal`, a position sees itself and what came before.
///   out = softmax(q·kᵀ/√(d/heads))·v per head (Vaswani et al. 2017)
Tensor self_attention(const Tensor& packed, const Ragged& layout, int64_t heads, bool causal);

/// Attention of target sequences to source sequences. query: (target tokens, d); packed: (source tokens, 2·d), key and
/// value side by side. Throws Error if the two layouts differ in their number of sequences.
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout, int64_t heads);

/// One query a row against what the row has seen, without a graph. query: (rows, d), rows may be strided;
/// cache: (rows, capacity, 2·d) of which the first `length` positions count → (rows, d).
Tensor cached_attention(const Tensor& query, const Tensor& cache, int64_t length, int64_t heads);

}  // namespace plumb::ops
