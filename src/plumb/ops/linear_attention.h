// Fast weights over ragged batches: each sequence and head has a matrix S, which each position writes to and reads
// from. Computed in blocks of positions, as matrix products, in O(length) time and memory, and composed of
// differentiable operations, so derivatives of any order exist.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

// Below, query, key: (tokens, heads, features); value: (tokens, heads, size); beta: (tokens, heads); S: (sequences,
// heads, features, size).

/// The sum rule, causal: S_t = S_{t−1} + k_t·v_tᵀ, y_t = S_tᵀ·q_t → (tokens, heads, size).
/// Katharopoulos et al. 2020, arXiv 2006.16236; Schmidhuber 1992.
Tensor sum_rule(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& layout);

/// S after the last position of each sequence.
Tensor sum_rule_weights(const Tensor& key, const Tensor& value, const Ragged& layout);

/// The delta rule, causal: S_t = S_{t−1} + β_t·k_t·(v_t − S_{t−1}ᵀ·k_t)ᵀ, y_t = S_tᵀ·q_t → (tokens, heads, size).
/// Schlag et al. 2021, arXiv 2102.11174. A block of C positions is one triangular system: with N the part of
/// diag(β)·K·Kᵀ below the diagonal, the rows of U = (I + N)⁻¹·diag(β)·(V − K·S) are the updates of the positions, and
/// S ← S + Kᵀ·U (Bischof & Van Loan's WY form; Yang et al. 2024, arXiv 2406.06484).
///
/// With log_decay g ≤ 0, (tokens, heads, features) or (tokens, heads, 1), S decays before each position: S_{t−1} above
/// is replaced by diag(exp(g_t))·S_{t−1} (Yang et al. 2024, arXiv 2412.06464; per feature: arXiv 2510.26692). Within a
/// block, K·Kᵀ and Q·Kᵀ then have a factor exp(G_t − G_j) per feature, where G is the cumulative sum of g in the block
/// (scaled_products.h).
struct DeltaRule {
  Tensor out;      // y
  Tensor weights;  // S after the last position of each sequence
};
DeltaRule delta_rule(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& beta,
                     const Ragged& layout, const Tensor& log_decay = {});

/// Its weights alone.
Tensor delta_rule_weights(const Tensor& key, const Tensor& value, const Tensor& beta, const Ragged& layout,
                          const Tensor& log_decay = {});

/// The positions of sequence i read from its matrix: y = S_iᵀ·q → (tokens, heads, size).
Tensor read_weights(const Tensor& query, const Tensor& weights, const Ragged& layout);

}  // namespace plumb::ops
