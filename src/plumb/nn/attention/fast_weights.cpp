#include "plumb/nn/attention/fast_weights.h"

#include "plumb/base/error.h"
#include "plumb/ops/linear_attention.h"

namespace plumb {
namespace {

/// Added to the divisor of normalized kinds: keeps 0/0, where no feature of a query is set, at 0, and is lost in
/// rounding otherwise.
constexpr double kSmallest = 1e-30;

struct FastWeightState final : AttentionState {
  Tensor weights;  // (rows, heads, features, size); undefined before the first step

  void reorder(const std::vector<int64_t>& order) override {
    if (!weights.defined()) return;
    const Tensor index = at::tensor(at::ArrayRef<int64_t>(order), at::TensorOptions(at::kLong));
    weights = weights.index_select(0, index.to(weights.device()));
  }
};

}  // namespace

FastWeights::FastWeights(const AttentionShape& shape, Rule rule)
    : heads_(shape.heads), size_(shape.size()), rule_(rule) {
  if (shape.positions && shape.positions->biased()) {
    throw Error("these positions add to the scores of softmax attention, and fast weights have none",
                "choose model.positions = \"rotary\", \"sinusoidal\", \"learned\" or \"none\", or attention = "
                "\"softmax\"");
  }
}

Tensor FastWeights::write_strength(const Tensor&) const { return {}; }

/// (tokens, d) → (tokens, heads, size); with a column of ones where z is wanted.
Tensor FastWeights::values(const Tensor& value) const {
  const Tensor v = by_head(value);
  return rule_ == Rule::normalized_sum ? at::cat({v, at::ones({v.size(0), heads_, 1}, v.options())}, 2) : v;
}

/// (tokens, heads, size), or with the divisor as last column → (tokens, d).
Tensor FastWeights::result(const Tensor& read) const {
  if (rule_ != Rule::normalized_sum) return read.reshape({read.size(0), heads_ * size_});
  const Tensor quotient = read.narrow(2, 0, size_) / (read.narrow(2, size_, 1) + kSmallest);
  return quotient.reshape({read.size(0), heads_ * size_});
}

Tensor FastWeights::self(const Tensor& packed, const Tensor& x, const Ragged& layout, bool causal,
                         const ForwardContext& context) const {
  const int64_t d = heads_ * size_;
  if (!causal) {
    return cross(packed.narrow(1, 0, d), layout, remember(packed.narrow(1, d, 2 * d), x, layout, context), context);
  }
  const Tensor query = query_features(by_head(packed.narrow(1, 0, d)), context);
  const Tensor key = key_features(by_head(packed.narrow(1, d, d)), context);
  const Tensor value = values(packed.narrow(1, 2 * d, d));
  return result(rule_ == Rule::delta ? ops::delta_rule(query, key, value, write_strength(x), layout)
                                     : ops::sum_rule(query, key, value, layout));
}

AttentionMemory FastWeights::remember(const Tensor& key_value, const Tensor& x, const Ragged& layout,
                                      const ForwardContext& context) const {
  const int64_t d = heads_ * size_;
  const Tensor key = key_features(by_head(key_value.narrow(1, 0, d)), context);
  const Tensor value = values(key_value.narrow(1, d, d));
  return {rule_ == Rule::delta ? ops::delta_rule_weights(key, value, write_strength(x), layout)
                               : ops::sum_rule_weights(key, value, layout),
          layout};
}

Tensor FastWeights::cross(const Tensor& query, const Ragged& layout, const AttentionMemory& memory,
                          const ForwardContext& context) const {
  return result(ops::read_weights(query_features(by_head(query), context), memory.content, layout));
}

std::unique_ptr<AttentionState> FastWeights::start(int64_t) const { return std::make_unique<FastWeightState>(); }

Tensor FastWeights::step(const Tensor& query, const Tensor& key_value, const Tensor& x, AttentionState& state) const {
  const ForwardContext context;
  const int64_t d = heads_ * size_;
  const Tensor q = query_features(by_head(query), context);
  const Tensor k = key_features(by_head(key_value.narrow(1, 0, d)), context);
  Tensor v = values(key_value.narrow(1, d, d));
  Tensor& s = dynamic_cast<FastWeightState&>(state).weights;
  if (!s.defined()) s = at::zeros({k.size(0), heads_, k.size(2), v.size(2)}, k.options());
  if (rule_ == Rule::delta) v = write_strength(x).unsqueeze(2) * (v - at::matmul(k.unsqueeze(2), s).squeeze(2));
  s = s + k.unsqueeze(3) * v.unsqueeze(2);
  return result(at::matmul(q.unsqueeze(2), s).squeeze(2));
}

}  // namespace plumb
