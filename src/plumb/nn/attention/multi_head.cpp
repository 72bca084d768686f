#include "plumb/nn/attention/multi_head.h"

#include "plumb/ops/linear.h"

namespace plumb {

MultiHeadAttention::MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model,
                                       int64_t heads, const MultiHeadOptions& options,
                                       const std::shared_ptr<const RelativePositions>& positions)
    : d_model_(d_model),
      heads_(heads),
      in_weight_(parameters.add(prefix + ".in_proj_weight", {3 * d_model, d_model}, Role::stacked_qkv)),
      in_bias_(parameters.add(prefix + ".in_proj_bias", {3 * d_model}, Role::bias)),
      out_weight_(parameters.add(prefix + ".out_proj.weight", {d_model, d_model}, Role::attention_output)),
      out_bias_(parameters.add(prefix + ".out_proj.bias", {d_model}, Role::bias)),
      positions_(positions),
      attention_(
          attentions().at(options.kind).make(parameters, {prefix, d_model, heads, options.attention, positions})) {
  if (options.qk_norm == "none") return;
  const auto& make = norms().at(options.qk_norm).make;
  query_norm_ = make(parameters, prefix + ".q_norm", d_model / heads, options.norm_eps);
  key_norm_ = make(parameters, prefix + ".k_norm", d_model / heads, options.norm_eps);
}

Tensor MultiHeadAttention::project(const Tensor& x, int64_t begin, int64_t count) const {
  return ops::linear(x, in_weight_.narrow(0, begin * d_model_, count * d_model_),
                     in_bias_.narrow(0, begin * d_model_, count * d_model_));
}

Tensor MultiHeadAttention::normalized(const Tensor& x, const Norm& norm, const ForwardContext& context) const {
  return norm(x.reshape({x.size(0) * heads_, d_model_ / heads_}), context).view({x.size(0), d_model_});
}

Tensor MultiHeadAttention::out(const Tensor& mixed) const { return ops::linear(mixed, out_weight_, out_bias_); }

Tensor MultiHeadAttention::self(const Tensor& x, const Ragged& layout, bool causal,
                                const ForwardContext& context) const {
  Tensor packed = ops::linear(x, in_weight_, in_bias_);  // (tokens, 3·d)
  if (query_norm_ || turns()) {
    Tensor both = packed.narrow(1, 0, 2 * d_model_);  // query and key
    if (query_norm_) {
      both = at::cat({normalized(both.narrow(1, 0, d_model_), *query_norm_, context),
                      normalized(both.narrow(1, d_model_, d_model_), *key_norm_, context)},
                     1);
    }
    if (turns()) both = positions_->turned(both, positions_->turn_at(layout.positions(), x.options()));
    packed = at::cat({both, packed.narrow(1, 2 * d_model_, d_model_)}, 1);
  }
  return out(attention_->self(packed, x, layout, causal, context));
}

Tensor MultiHeadAttention::self_step(const Tensor& x, int64_t position, AttentionState& state) const {
  const ForwardContext evaluation;
  Tensor query = project(x, 0, 1);
  Tensor key_value = project(x, 1, 2);
  if (query_norm_ || turns()) {
    Tensor key = key_value.narrow(1, 0, d_model_);
    if (query_norm_) {
      query = normalized(query, *query_norm_, evaluation);
      key = normalized(key, *key_norm_, evaluation);
    }
    if (turns()) {
      const Turn turn = positions_->turn_at({position}, x.options());
      query = positions_->turned(query, turn);
      key = positions_->turned(key, turn);
    }
    key_value = at::cat({key, key_value.narrow(1, d_model_, d_model_)}, 1);
  }
  return out(attention_->step(query, key_value, x, state));
}

AttentionMemory MultiHeadAttention::remember(const Tensor& memory, const Ragged& layout,
                                             const ForwardContext& context) const {
  Tensor key_value = project(memory, 1, 2);
  if (key_norm_) {
    key_value = at::cat(
        {normalized(key_value.narrow(1, 0, d_model_), *key_norm_, context), key_value.narrow(1, d_model_, d_model_)},
        1);
  }
  return attention_->remember(key_value, memory, layout, context);
}

Tensor MultiHeadAttention::cross(const Tensor& x, const Ragged& layout, const AttentionMemory& memory,
                                 const ForwardContext& context) const {
  Tensor query = project(x, 0, 1);
  if (query_norm_) query = normalized(query, *query_norm_, context);
  return out(attention_->cross(query, layout, memory, context));
}

}  // namespace plumb
