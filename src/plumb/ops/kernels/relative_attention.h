// Causal softmax attention of one head over one sequence with scores that also depend on distance, with only one block
// of query rows of the score matrix in memory; forward and backward.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// A matrix in memory: row i begins at data + i·stride.
template <typename T>
struct RowsOf {
  T* data;
  int64_t stride;
  [[nodiscard]] T* row(int64_t i) const { return data + i * stride; }
};

/// One head of one sequence. With S_ij = scale·(content_i·key_j + position_i·distance_{i−j}) for j ≤ i and P = softmax
/// of the rows of S: out = P·value. All matrices: (length, size), row d of `distance` for distance d.
struct RelativeHead {
  int64_t length;
  int64_t size;
  float scale;
  RowsOf<const float> content, position, key, value, distance;
};

/// out: (length, size). log_sums: (length), log Σ_j exp(S_ij), for the backward pass.
void relative_attention_forward(const RelativeHead& head, const RowsOf<float>& out, float* log_sums);

/// From `out` and `log_sums` of the forward pass and `cotangent`, the gradient of `out`, computes the gradients of
/// content and position (overwritten) and of key, value and distance (added to).
///   dvalue = Pᵀ·dout;  dS = scale·P∘(dout·valueᵀ − rowsum(dout∘out));  dcontent = dS·key;  dkey = dSᵀ·content;
///   dposition_i = Σ_j dS_ij·distance_{i−j};  ddistance_d = Σ_i dS_{i,i−d}·position_i.
struct RelativeBackward {
  RowsOf<const float> out, cotangent;
  const float* log_sums;
  RowsOf<float> content, position, key, value, distance;
};
void relative_attention_backward(const RelativeHead& head, const RelativeBackward& gradient);

}  // namespace plumb::kernels
