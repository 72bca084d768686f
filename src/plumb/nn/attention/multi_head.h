// Multi-head softmax attention, Vaswani et al. 2017, in its two faces: over whole ragged sequences, and step by step.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/nn/parameters.h"
#include "plumb/ops/attention.h"

namespace plumb {

/// The keys and values that self-attention has seen, for decoding step by step.
struct KeyValueCache {
  ops::CachedKeys keys;

  /// One more position of every row: (rows, 2·d), key and value side by side.
  void append(const Tensor& position);

  /// Row i becomes what row order[i] was: beam search keeps some hypotheses and drops others.
  void reorder(const std::vector<int64_t>& order);
};

/// out = concat over heads of softmax(QKᵀ/√(d/heads))V, times W^O; Q, K, V from one stacked projection.
/// Parameters as in torch.nn.MultiheadAttention: in_proj_weight (3·d, d), in_proj_bias, out_proj.weight, out_proj.bias.
class MultiHeadAttention {
 public:
  MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model, int64_t heads);

  /// Every sequence attends to itself; x: (tokens, d).
  [[nodiscard]] Tensor self(const Tensor& x, const Ragged& layout, bool causal) const;

  /// One more position of every row; x: (rows, d). Equal to `self` with causal on the whole sequence.
  [[nodiscard]] Tensor self_step(const Tensor& x, KeyValueCache& cache) const;

  /// Keys and values of the source, (source tokens, 2·d), to be attended to by `cross`.
  [[nodiscard]] Tensor project_memory(const Tensor& memory) const;

  /// Sequences of `layout` attend to those of the memory; x: (tokens, d).
  [[nodiscard]] Tensor cross(const Tensor& x, const Ragged& layout, const Tensor& projected_memory,
                             const Ragged& memory_layout) const;

 private:
  int64_t d_model_;
  int64_t heads_;
  Tensor in_weight_;
  Tensor in_bias_;
  Tensor out_weight_;
  Tensor out_bias_;
};

}  // namespace plumb
