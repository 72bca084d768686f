// Causal softmax attention over ragged batches, with scores that also depend on distance.
#pragma once

#include "plumb/ops/attention.h"

namespace plumb::ops {

/// Attention of each position to itself and earlier ones, per head with
///   score(i, j) = (c_i·k_j + p_i·r_{i−j})/√size, j ≤ i   (Dai et al. 2019, arXiv 1901.02860, section 3.3).
/// content c, position p: (tokens, width); key_value: (tokens, 2·kv_width), key and value side by side; distance r:
/// (longest sequence or more, width), row d for distance d → (tokens, width). The float32 kernels keep no scores; the
/// backward pass recomputes them. Throws Error if the columns do not match `shape`, the head groups are uneven, or
/// a matrix has too few rows.
Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape);

}  // namespace plumb::ops
