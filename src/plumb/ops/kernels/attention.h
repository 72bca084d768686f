// Softmax attention of one head over one sequence, without padding, with only one block of query rows of the score
// matrix in memory; forward, backward, and double backward.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// One head of one sequence: pointers to its first token, and strides between tokens.
/// q, out: (query_length, size); k, v: (key_length, size). With S = scale·q·kᵀ and P = softmax of the rows of S
/// (if `causal`, without keys after the query's position): out = P·v.
template <typename T>
struct AttentionHead {
  int64_t query_length;
  int64_t key_length;
  int64_t size;
  bool causal;
  T scale;
  const T* q;
  int64_t q_stride;
  const T* k;
  const T* v;
  int64_t kv_stride;
};

/// One query of one head with scattered keys: key p begins at keys[p] + column, its value at keys[p] + column +
/// value_offset. q: (size) → out: (size), softmax(scale·q·kᵀ)·v.
template <typename T>
struct CachedHead {
  int64_t length;
  int64_t size;
  T scale;
  const T* q;
  const T* const* keys;
  int64_t column;
  int64_t value_offset;
};

/// From dout, computes dq (stride q_stride, overwritten), dk and dv (stride kv_stride, added to).
/// dv = Pᵀ·dout;  dP = dout·vᵀ;  dS = P∘(dP − rowsum(dP∘P));  dq = scale·dS·k;  dk = scale·dSᵀ·q.
template <typename T>
struct AttentionBackward {
  const T* dout;
  int64_t dout_stride;
  T* dq;
  T* dk;
  T* dv;
};

/// From cotangents a, b, c of dq, dk, dv (strided like q, k, v), computes those of dout (stride dout_stride) and q,
/// both overwritten, and of k and v, added to. With G = dS, Ḡ = scale·(a·kᵀ + q·bᵀ), u = rowsum(Ḡ∘P), ρ = rowsum(dP∘P):
///   ddP = P∘(Ḡ − u);  P̄ = dout·cᵀ + Ḡ∘(dP − ρ) − u∘dP;  S̄ = P∘(P̄ − rowsum(P̄∘P));
///   ddout = P·c + ddP·v;  q̄ = scale·(G·b + S̄·k);  k̄ = scale·(Gᵀ·a + S̄ᵀ·q);  v̄ = ddPᵀ·dout.
template <typename T>
struct AttentionDoubleBackward {
  const T* dout;
  int64_t dout_stride;
  const T* a;
  const T* b;
  const T* c;
  T* ddout;
  T* q_bar;
  T* k_bar;
  T* v_bar;
};

template <typename T>
struct AttentionKernels {
  /// out: row stride out_stride.
  void (*forward)(const AttentionHead<T>& head, T* out, int64_t out_stride);
  void (*cached)(const CachedHead<T>& head, T* out);
  void (*backward)(const AttentionHead<T>& head, const AttentionBackward<T>& gradient);
  void (*double_backward)(const AttentionHead<T>& head, const AttentionDoubleBackward<T>& gradient);
};

/// Those of the instructions in use.
template <typename T>
const AttentionKernels<T>& attention();

}  // namespace plumb::kernels
