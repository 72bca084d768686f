// Multi-head attention: the projections around an attention of any kind, in its two faces.
#pragma once

#include <memory>
#include <string>

#include "plumb/nn/attention/attention.h"
#include "plumb/nn/norm/norm.h"

namespace plumb {

struct MultiHeadOptions {
  std::string kind = "softmax";
  std::string qk_norm = "none";  // a norm over the features of each head's queries and keys
  double norm_eps = 1e-5;
  VariantOptions attention;
};

/// out = concat over heads of attention(Q, K, V), times W^O; Q, K, V from one stacked projection (Vaswani et al. 2017).
/// Parameters as in torch.nn.MultiheadAttention: in_proj_weight (3·d, d), in_proj_bias, out_proj.weight, out_proj.bias.
/// With qk_norm, q_norm.weight and k_norm.weight (size) too: Q and K are normalized a head at a time before they meet
/// (Henry et al. 2020, arXiv 2010.04245; Dehghani et al. 2023, arXiv 2302.05442).
class MultiHeadAttention {
 public:
  /// `positions` act within self-attention; null: none do.
  MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model, int64_t heads,
                     const MultiHeadOptions& options = {},
                     const std::shared_ptr<const RelativePositions>& positions = nullptr);

  /// Every sequence attends to itself; x: (tokens, d).
  [[nodiscard]] Tensor self(const Tensor& x, const Ragged& layout, bool causal, const ForwardContext& context) const;

  /// The state of `rows` rows that have seen nothing.
  [[nodiscard]] std::unique_ptr<AttentionState> start(int64_t rows) const { return attention_->start(rows); }

  /// The position `position` of every row; x: (rows, d). Equal to `self` with causal on the whole sequence.
  [[nodiscard]] Tensor self_step(const Tensor& x, int64_t position, AttentionState& state) const;

  /// What `cross` needs of the source; memory: (source tokens, d).
  [[nodiscard]] AttentionMemory remember(const Tensor& memory, const Ragged& layout,
                                         const ForwardContext& context) const;

  /// Sequences of `layout` attend to those of the memory; x: (tokens, d).
  [[nodiscard]] Tensor cross(const Tensor& x, const Ragged& layout, const AttentionMemory& memory,
                             const ForwardContext& context) const;

 private:
  /// Rows [begin, begin + count)·d of the stacked projection.
  [[nodiscard]] Tensor project(const Tensor& x, int64_t begin, int64_t count) const;
  [[nodiscard]] Tensor normalized(const Tensor& x, const Norm& norm, const ForwardContext& context) const;
  [[nodiscard]] bool turns() const { return positions_ && positions_->turns(); }
  [[nodiscard]] Tensor out(const Tensor& mixed) const;

  int64_t d_model_;
  int64_t heads_;
  Tensor in_weight_;
  Tensor in_bias_;
  Tensor out_weight_;
  Tensor out_bias_;
  std::unique_ptr<Norm> query_norm_;  // both or none
  std::unique_ptr<Norm> key_norm_;
  std::shared_ptr<const RelativePositions> positions_;
  std::unique_ptr<Attention> attention_;
};

}  // namespace plumb
