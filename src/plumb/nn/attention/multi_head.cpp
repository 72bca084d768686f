#include "plumb/nn/attention/multi_head.h"

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

/// The parts of the joint projection.
constexpr size_t kQuery = 0, kKey = 1, kValue = 2;

}  // namespace

MultiHeadAttention::MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model,
                                       const ops::HeadShape& heads, const MultiHeadOptions& options,
                                       const std::shared_ptr<RelativePositions>& positions)
    : heads_(heads), positions_(positions) {
  ops::check_shape(heads);
  const std::vector<int64_t> parts = {heads.width(), heads.kv_width(), heads.kv_width()};
  const int64_t rows = heads.width() + 2 * heads.kv_width();
  const Tensor weight = parameters.add_stacked(prefix + ".in_proj_weight", {rows, d_model}, parts, Role::stacked_qkv);
  const bool biased = options.bias != "none";
  in_ = Linear(weight, biased ? parameters.add(prefix + ".in_proj_bias", {rows}, Role::bias) : Tensor(), parts);
  out_ =
      Linear(parameters, prefix + ".out_proj", d_model, heads.width(), Role::attention_output, options.bias == "all");
  if (options.gate) gate_ = Linear(parameters, prefix + ".gate", heads.width(), d_model, Role::weight, false);
  attention_ =
      make_attention(options.kind, parameters, {prefix, d_model, heads, options.options, positions, options.dropout});
  const size_t norms_begin = parameters.all().size();
  const auto norm_of = [&](const std::string& kind, const char* name) {
    return kind == "none" ? nullptr : norms().at(kind).make(parameters, prefix + name, heads.size, options.norm_eps);
  };
  query_norm_ = norm_of(options.qk_norm, ".q_norm");
  key_norm_ = norm_of(options.qk_norm, ".k_norm");
  value_norm_ = norm_of(options.value_norm, ".v_norm");
  for (size_t i = norms_begin; i < parameters.all().size(); ++i) by_head_.push_back(parameters.all()[i].value);
  if (options.unit_query_key) {
    const double initial = 1 / std::sqrt(static_cast<double>(d_model));
    query_key_scale_ = parameters.add_constant(prefix + ".qk_scale", {heads.kv_width()}, initial);
  }
  in_.adapt(parameters, options.lora, "query", prefix + ".q", kQuery);
  in_.adapt(parameters, options.lora, "key", prefix + ".k", kKey);
  in_.adapt(parameters, options.lora, "value", prefix + ".v", kValue);
  out_.adapt(parameters, options.lora, "output", prefix + ".out");
  if (gate_) gate_.adapt(parameters, options.lora, "gate", prefix + ".gate");
}

void MultiHeadAttention::add_value_residual(Parameters& parameters, const std::string& prefix) {
  value_residual_ = parameters.add_constant(prefix + ".value_residual.weight", {2}, 0.5);
  by_head_.push_back(value_residual_);
}

void MultiHeadAttention::divide(LayerDivision& division) {
  if (!attention_->divisible() || (positions_ && !positions_->divisible()) || query_key_scale_.defined())
    throw Error("this attention cannot be divided among processes");
  in_.divide_outputs(division);
  if (gate_) gate_.divide_outputs(division);
  out_.divide_inputs(division);
  if (positions_) positions_->divide(division);
  for (const Tensor& each : by_head_) division.sum_gradient(each);
  heads_ = {division.per_rank(heads_.heads), division.per_rank(heads_.kv_heads), heads_.size};
  attention_->keep(heads_);
  group_ = division.group();
}

Tensor MultiHeadAttention::normalized(const Tensor& x, const Norm& norm, const ForwardContext& context) const {
  return norm(x.reshape({x.size(0) * (x.size(1) / heads_.size), heads_.size}), context).view({x.size(0), x.size(1)});
}

Tensor MultiHeadAttention::scaled_units(const Tensor& x) const {
  const int64_t heads = x.size(1) / heads_.size;
  constexpr double kEpsilon = 1e-12;  // prevents division by zero
  const Tensor units =
      ops::rms_norm(x.reshape({x.size(0) * heads, heads_.size}), at::ones({heads_.size}, x.options()), kEpsilon);
  // √d_model·s, repeated for the queries that share a key.
  const Tensor gains = query_key_scale_.view({heads_.kv_heads, heads_.size}) * std::sqrt(static_cast<double>(in_.in()));
  return units.view({x.size(0), x.size(1)}) * gains.repeat_interleave(heads / heads_.kv_heads, 0).view({x.size(1)});
}

Tensor MultiHeadAttention::projected(const Tensor& mixed, const Tensor& x) const {
  return out_(gate_ ? mixed * at::sigmoid(gate_(x)) : mixed);
}

Tensor MultiHeadAttention::prepared(const Tensor& packed, AttentionPass& pass, const ForwardContext& context) const {
  const int64_t width = heads_.width();
  const int64_t kv_width = heads_.kv_width();
  Tensor query_key = packed.narrow(1, 0, width + kv_width);
  Tensor value = packed.narrow(1, width + kv_width, kv_width);
  if (query_norm_) {
    query_key = at::cat({normalized(query_key.narrow(1, 0, width), *query_norm_, context),
                         normalized(query_key.narrow(1, width, kv_width), *key_norm_, context)},
                        1);
  }
  if (rotates()) {
    if (pass.angles_of != positions_.get()) {
      pass.angles = positions_->angles_at(pass.positions, packed.options());
      pass.angles_of = positions_.get();
    }
    query_key = positions_->rotated(query_key, pass.angles);
  }
  if (query_key_scale_.defined()) {
    query_key =
        at::cat({scaled_units(query_key.narrow(1, 0, width)), scaled_units(query_key.narrow(1, width, kv_width))}, 1);
  }
  if (value_residual_.defined())
    value = value_residual_.select(0, 0) * value + value_residual_.select(0, 1) * pass.first_values;
  if (value_norm_) value = normalized(value, *value_norm_, context);
  return at::cat({query_key, value}, 1);
}

void MultiHeadAttention::keep_values(const Tensor& joint, AttentionPass& pass) const {
  if (pass.keeps_values && !pass.first_values.defined())
    pass.first_values = joint.narrow(1, heads_.width() + heads_.kv_width(), heads_.kv_width());
}

Tensor MultiHeadAttention::self(const Tensor& input, AttentionPass& pass, bool causal,
                                const ForwardContext& context) const {
  const Tensor x = group_.copy_to_region(input);
  const Tensor joint = in_(x);  // (tokens, width + 2·kv_width)
  keep_values(joint, pass);
  const Tensor packed = prepares() ? prepared(joint, pass, context) : joint;
  return projected(attention_->self(packed, x, pass.layout, causal, context), x);
}

Tensor MultiHeadAttention::read(const Tensor& x, AttentionPass& pass, AttentionState& state) const {
  const int64_t width = heads_.width();
  const int64_t kv_width = heads_.kv_width();
  // One product: the input is rounded or quantized once, and threads synchronize once.
  const Tensor joint = in_(x);
  keep_values(joint, pass);
  const Tensor packed = prepares() ? prepared(joint, pass, {}) : joint;
  const Tensor query = packed.narrow(1, 0, width).contiguous();
  const Tensor key_value = packed.narrow(1, width, 2 * kv_width).contiguous();
  return projected(attention_->read(query, key_value, x, pass.layout, state), x);
}

AttentionMemory MultiHeadAttention::remember(const Tensor& input, const Ragged& layout,
                                             const ForwardContext& context) const {
  const Tensor memory = group_.copy_to_region(input);
  const int64_t kv_width = heads_.kv_width();
  Tensor key_value = in_.parts(memory, kKey, 2);
  if (key_norm_ || query_key_scale_.defined() || value_norm_) {
    const Tensor key = key_value.narrow(1, 0, kv_width), value = key_value.narrow(1, kv_width, kv_width);
    key_value = at::cat({key_norm_                    ? normalized(key, *key_norm_, context)
                         : query_key_scale_.defined() ? scaled_units(key)
                                                      : key,
                         value_norm_ ? normalized(value, *value_norm_, context) : value},
                        1);
  }
  return attention_->remember(key_value, memory, layout, context);
}

Tensor MultiHeadAttention::cross(const Tensor& input, const Ragged& layout, const AttentionMemory& memory,
                                 const ForwardContext& context) const {
  const Tensor x = group_.copy_to_region(input);
  Tensor query = in_.parts(x, kQuery, 1);
  if (query_norm_) query = normalized(query, *query_norm_, context);
  if (query_key_scale_.defined()) query = scaled_units(query);
  return projected(attention_->cross(query, layout, memory, context), x);
}

}  // namespace plumb
