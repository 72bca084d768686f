// The normalized sum rule with positive features given by their logarithms: softmax attention by random features
// (FAVOR+). The features themselves may exceed the range of floating-point numbers.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

// query q, key k: (tokens, heads, features), the logarithms of the features φ; value v: (tokens, heads, size).
//   S_t = Σ_{j ≤ t} exp(k_j)·v_jᵀ,  z_t = Σ_{j ≤ t} exp(k_j),  y_t = S_tᵀ·exp(q_t) / z_tᵀ·exp(q_t)
// For each feature, the peak p, the largest k_j so far, is kept along with S and z, which are divided by exp(p) and
// rescaled when a larger key arrives. z is then at least 1, and exp(q + p) is divided by its largest element, so the
// divisor of y is never below 1, whatever the norms of queries and keys. The peaks cancel in y and are excluded from
// derivatives. A position uses only the peaks of itself and earlier positions.
//
// The state of a sequence and head is a matrix (features, size + 2): S, z and p.

/// Causal → (tokens, heads, size). Derivatives of any order exist.
Tensor exponential_rule(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& layout);

/// The state after the last position of each sequence, (sequences, heads, features, size + 2).
Tensor exponential_rule_weights(const Tensor& key, const Tensor& value, const Ragged& layout);

/// The positions of sequence i read from state i → (tokens, heads, size); 0 if nothing has been written.
Tensor exponential_rule_read(const Tensor& query, const Tensor& weights, const Ragged& layout);

/// The state before the first position.
Tensor exponential_rule_start(int64_t sequences, int64_t heads, int64_t features, int64_t size,
                              const at::TensorOptions& options);

/// One position per sequence: writes token i to state i of `weights`, which is replaced, then reads it → (sequences,
/// heads, size).
Tensor exponential_rule_step(const Tensor& query, const Tensor& key, const Tensor& value, Tensor& weights);

}  // namespace plumb::ops
