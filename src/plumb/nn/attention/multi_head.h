// Multi-head attention: the projections around an attention of any kind, for whole sequences and incremental decoding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/nn/attention/attention.h"
#include "plumb/nn/linear.h"
#include "plumb/nn/norm/norm.h"

namespace plumb {

struct MultiHeadOptions {
  std::string kind = "softmax";
  std::string qk_norm = "none";  // a norm over the features of each head's queries and keys
  double norm_eps = 1e-5;
  std::string bias = "all";         // which projections have a bias: "all", "qkv" (all but the output), "none"
  bool gate = false;                // multiplies the output of attention by σ(W_g·x)
  double dropout = 0;               // of the weights of softmax attention, in training
  VariantOptions options{};         // options of attentions
  std::string value_norm = "none";  // a norm over the features of each head's values
  bool unit_query_key = false;      // queries and keys of length √size, with trained gains (nGPT); excludes qk_norm
  LoraOptions lora{};               // adapters of the projections
};

/// Tokens passing through the self-attentions of a stack: their positions, and data that layers share.
struct AttentionPass {
  /// Tokens at these positions of their sequences.
  AttentionPass(const Ragged& layout_in, std::vector<int64_t> positions_in)
      : layout(layout_in), positions(std::move(positions_in)) {}
  /// Whole sequences.
  explicit AttentionPass(const Ragged& layout_in) : AttentionPass(layout_in, layout_in.positions()) {}

  const Ragged& layout;
  std::vector<int64_t> positions;                // (tokens)
  const RelativePositions* angles_of = nullptr;  // the owner of `angles`
  Angles angles{};
  bool keeps_values = false;  // whether later layers read the values of the first
  Tensor first_values{};      // (tokens, kv_width): these, if they are kept
};

/// out = concat over heads of attention(Q, K, V), times W^O; Q, K, V from one stacked projection (Vaswani et al. 2017).
/// Parameters as in torch.nn.MultiheadAttention: in_proj_weight (width + 2·kv_width, d_model), in_proj_bias,
/// out_proj.weight (d_model, width), out_proj.bias.
/// With qk_norm, also q_norm.weight and k_norm.weight (size): Q and K are normalized in each head before their product
/// (Henry et al. 2020, arXiv 2010.04245; Dehghani et al. 2023, arXiv 2302.05442). With value_norm, v_norm.weight
/// (size).
/// With unit_query_key, also qk_scale (kv_width): after their rotation, Q and K are scaled to length √size in each head
/// and multiplied by √d_model·qk_scale, a gain for each feature of a key-value head and of the queries that share it,
/// initially 1 (Loshchilov et al. 2024, arXiv 2410.01131). With one query head for each key-value head, scores are
/// √size·(s∘n(q))·(s∘n(k)) with n(x) = x/‖x‖; the factor √d_model lets Adam change s as fast as the matrices.
/// With gate, also gate.weight (width, d_model): W^O reads attention(Q, K, V) ⊙ σ(W_g·x), x the input of the queries
/// (Qiu et al. 2025, arXiv 2505.06708).
/// With add_value_residual, also value_residual.weight (2): λ₁ and λ₂, initially ½ each, in v ← λ₁·v + λ₂·v₁, where v₁
/// is the value of the same token in the first layer of the stack (Zhou et al. 2024, arXiv 2410.17897).
/// With lora, also q_lora, k_lora, v_lora, out_lora and gate_lora (.a and .b) for the matrices it adapts: parts of
/// in_proj_weight, out_proj.weight and gate.weight (nn/linear.h).
class MultiHeadAttention {
 public:
  /// `positions` act within self-attention; may be null. Throws Error unless kv_heads is positive and divides heads.
  MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model, const ops::HeadShape& heads,
                     const MultiHeadOptions& options = {},
                     const std::shared_ptr<RelativePositions>& positions = nullptr);

  /// Mixes the first layer's values into the values. Call it after all other parameters of the attention are declared.
  void add_value_residual(Parameters& parameters, const std::string& prefix);

  /// Divides the heads among the ranks. Throws Error if the attention or its positions are not divisible, if there are
  /// gains by head (unit_query_key), or if the heads or the key-value heads are no multiple of the ranks.
  void divide(LayerDivision& division);

  /// Each sequence attends to itself; x: (tokens, d_model).
  [[nodiscard]] Tensor self(const Tensor& x, AttentionPass& pass, bool causal, const ForwardContext& context) const;
  [[nodiscard]] Tensor self(const Tensor& x, const Ragged& layout, bool causal, const ForwardContext& context) const {
    AttentionPass pass(layout);
    return self(x, pass, causal, context);
  }

  /// The state of `rows` rows before the first position.
  [[nodiscard]] std::unique_ptr<AttentionState> start(int64_t rows) const { return attention_->start(rows); }

  /// Reads further positions of each row, without dropout; x: (tokens, d_model). Equals the last positions of causal
  /// `self` over the whole sequences. Call it without a graph (at::NoGradGuard).
  [[nodiscard]] Tensor read(const Tensor& x, AttentionPass& pass, AttentionState& state) const;

  /// The keys and values that `cross` attends to; memory: (source tokens, d_model).
  [[nodiscard]] AttentionMemory remember(const Tensor& memory, const Ragged& layout,
                                         const ForwardContext& context) const;

  /// Sequences of `layout` attend to those of the memory; x: (tokens, d_model).
  [[nodiscard]] Tensor cross(const Tensor& x, const Ragged& layout, const AttentionMemory& memory,
                             const ForwardContext& context) const;

 private:
  /// Normalizes each head; heads are side by side.
  [[nodiscard]] Tensor normalized(const Tensor& x, const Norm& norm, const ForwardContext& context) const;
  /// Queries or keys, (tokens, heads·size), of length √size in each head times their gains. Only with unit_query_key.
  [[nodiscard]] Tensor scaled_units(const Tensor& x) const;
  /// Whether `prepared` changes anything.
  [[nodiscard]] bool prepares() const {
    return query_norm_ || query_key_scale_.defined() || value_norm_ || rotates() || value_residual_.defined();
  }
  /// Query, key and value side by side as attention sees them: queries and keys normalized and rotated (with
  /// unit_query_key, rotated and normalized), values mixed with those of the first layer and normalized.
  [[nodiscard]] Tensor prepared(const Tensor& packed, AttentionPass& pass, const ForwardContext& context) const;
  [[nodiscard]] bool rotates() const { return positions_ && positions_->rotates(); }
  /// In the first layer of a pass that keeps its values: finds them in the joint projection.
  void keep_values(const Tensor& joint, AttentionPass& pass) const;
  /// The output of attention, (tokens, width), gated by the input x, (tokens, d_model), and projected.
  [[nodiscard]] Tensor projected(const Tensor& mixed, const Tensor& x) const;

  ops::HeadShape heads_;
  Linear in_;                         // query, key and value, (width + 2·kv_width, d_model)
  Linear out_;                        // W^O, (d_model, width)
  Linear gate_;                       // W_g, (width, d_model), or absent
  std::unique_ptr<Norm> query_norm_;  // both or neither
  std::unique_ptr<Norm> key_norm_;
  std::unique_ptr<Norm> value_norm_;  // or null
  Tensor query_key_scale_;            // (kv_width): gains divided by √d_model, or undefined
  std::shared_ptr<RelativePositions> positions_;
  std::unique_ptr<Attention> attention_;
  Tensor value_residual_;        // (2), or undefined
  std::vector<Tensor> by_head_;  // parameters that act on each head: of the norms and the value residual
  Group group_;                  // the ranks that divide the heads
};

}  // namespace plumb
