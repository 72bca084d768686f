#include "plumb/nn/attention/fast_weights.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/error.h"
#include "plumb/ops/exponential_rule.h"
#include "plumb/ops/index.h"
#include "plumb/ops/linear_attention.h"

namespace plumb {
namespace {

/// Added to the divisor of normalized kinds, so that 0/0, from a query without features, gives 0; otherwise lost in
/// rounding.
constexpr double kSmallest = 1e-30;

struct FastWeightState final : AttentionState {
  explicit FastWeightState(int64_t count) : rows(count) {}
  int64_t rows;
  Tensor weights;  // (rows, heads, features, …), depending on the rule; undefined before the first position

  void reorder(const std::vector<int64_t>& order) override {
    rows = static_cast<int64_t>(order.size());
    if (!weights.defined()) return;
    weights = weights.index_select(0, ops::index_beside(weights, order));
  }
  [[nodiscard]] int64_t bytes() const override {
    return weights.defined() ? static_cast<int64_t>(weights.nbytes()) : 0;
  }
};

}  // namespace

FastWeights::FastWeights(const AttentionShape& shape, Rule rule, int64_t features, FeatureMap map)
    : heads_(shape.heads), rule_(rule), features_(features), map_(std::move(map)) {
  if (shape.positions && shape.positions->biased()) {
    throw Error("these positions add to attention scores, which fast weights do not have",
                "choose model.positions = \"rotary\", \"sinusoidal\", \"learned\" or \"none\", or attention = "
                "\"softmax\"");
  }
}

Tensor FastWeights::query_features(const Tensor& query, const ForwardContext&) const { return map_(query); }
Tensor FastWeights::key_features(const Tensor& key, const ForwardContext&) const { return map_(key); }
Tensor FastWeights::write_strength(const Tensor&) const { return {}; }
Tensor FastWeights::log_decay(const Tensor&) const { return {}; }

/// (tokens, heads·size) → (tokens, heads, size)
Tensor FastWeights::by_head(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1) / heads_.size, heads_.size});
}

AttentionWork FastWeights::work() const {
  const auto heads = static_cast<double>(heads_.heads);
  const double matrix = static_cast<double>(features_) * static_cast<double>(heads_.size);
  return {.per_query = heads * (matrix + feature_work()),
          .per_key =
              heads * matrix * (rule_ == Rule::delta ? 2 : 1) + static_cast<double>(heads_.kv_heads) * feature_work()};
}

/// (tokens, kv_heads, …) → (tokens, heads, …)
Tensor FastWeights::repeated(const Tensor& x) const {
  return heads_.group() == 1 ? x : x.repeat_interleave(heads_.group(), 1);
}

FastWeights::Projected FastWeights::projected(const Tensor& query, const Tensor& key_value, const Tensor& x,
                                              const ForwardContext& context) const {
  Projected tokens;
  if (query.defined()) tokens.query = query_features(by_head(query), context);
  tokens.key = repeated(key_features(by_head(key_value.narrow(1, 0, heads_.kv_width())), context));
  tokens.value = repeated(by_head(key_value.narrow(1, heads_.kv_width(), heads_.kv_width())));
  if (rule_ == Rule::normalized_sum) {
    const Tensor& value = tokens.value;
    tokens.value = at::cat({value, at::ones({value.size(0), heads_.heads, 1}, value.options())}, 2);
  }
  if (rule_ == Rule::delta) {
    tokens.beta = write_strength(x);
    tokens.decay = log_decay(x);
  }
  return tokens;
}

/// (tokens, heads, size), or with the divisor as the last column → (tokens, width).
Tensor FastWeights::result(const Tensor& read) const {
  if (rule_ != Rule::normalized_sum) return read.reshape({read.size(0), heads_.width()});
  const Tensor quotient = read.narrow(2, 0, heads_.size) / (read.narrow(2, heads_.size, 1) + kSmallest);
  return quotient.reshape({read.size(0), heads_.width()});
}

/// S after the last position of each sequence.
Tensor FastWeights::weights(const Projected& tokens, const Ragged& layout) const {
  switch (rule_) {
    case Rule::delta:
      return ops::delta_rule_weights(tokens.key, tokens.value, tokens.beta, layout, tokens.decay);
    case Rule::exponential_sum:
      return ops::exponential_rule_weights(tokens.key, tokens.value, layout);
    default:
      return ops::sum_rule_weights(tokens.key, tokens.value, layout);
  }
}

Tensor FastWeights::causal(const Projected& tokens, const Ragged& layout) const {
  switch (rule_) {
    case Rule::delta:
      return result(ops::delta_rule(tokens.query, tokens.key, tokens.value, tokens.beta, layout, tokens.decay).out);
    case Rule::exponential_sum:
      return result(ops::exponential_rule(tokens.query, tokens.key, tokens.value, layout));
    default:
      return result(ops::sum_rule(tokens.query, tokens.key, tokens.value, layout));
  }
}

Tensor FastWeights::self(const Tensor& packed, const Tensor& x, const Ragged& layout, bool causal_in,
                         const ForwardContext& context) const {
  const Tensor query = packed.narrow(1, 0, heads_.width());
  const Tensor key_value = packed.narrow(1, heads_.width(), 2 * heads_.kv_width());
  if (!causal_in) return cross(query, layout, remember(key_value, x, layout, context), context);
  return causal(projected(query, key_value, x, context), layout);
}

AttentionMemory FastWeights::remember(const Tensor& key_value, const Tensor& x, const Ragged& layout,
                                      const ForwardContext& context) const {
  return {weights(projected({}, key_value, x, context), layout), layout};
}

Tensor FastWeights::cross(const Tensor& query, const Ragged& layout, const AttentionMemory& memory,
                          const ForwardContext& context) const {
  const Tensor features = query_features(by_head(query), context);
  return result(rule_ == Rule::exponential_sum ? ops::exponential_rule_read(features, memory.content, layout)
                                               : ops::read_weights(features, memory.content, layout));
}

std::unique_ptr<AttentionState> FastWeights::start(int64_t rows) const {
  return std::make_unique<FastWeightState>(rows);
}

/// The weights of `rows` rows before the first position.
Tensor FastWeights::empty_weights(const Projected& tokens, int64_t rows) const {
  const int64_t features = tokens.key.size(2);
  const int64_t size = tokens.value.size(2);
  const at::TensorOptions& options = tokens.key.options();
  if (rule_ == Rule::exponential_sum) {
    return ops::exponential_rule_start(rows, heads_.heads, features, size, options);
  }
  return at::zeros({rows, heads_.heads, features, size}, options);
}

/// Processes one position of each row and updates `weights`, (rows, heads, features, …), in place where the rule
/// permits.
Tensor FastWeights::step(const Projected& tokens, Tensor& weights) const {
  const Tensor& k = tokens.key;
  if (rule_ == Rule::exponential_sum) {
    return result(ops::exponential_rule_step(tokens.query, k, tokens.value, weights));
  }
  Tensor v = tokens.value;
  if (tokens.decay.defined()) weights.mul_(at::exp(tokens.decay).unsqueeze(3));
  if (rule_ == Rule::delta) v = tokens.beta.unsqueeze(2) * (v - at::matmul(k.unsqueeze(2), weights).squeeze(2));
  weights.addcmul_(k.unsqueeze(3), v.unsqueeze(2));
  return result(at::matmul(tokens.query.unsqueeze(2), weights).squeeze(2));
}

Tensor FastWeights::read(const Tensor& query, const Tensor& key_value, const Tensor& x, const Ragged& layout,
                         AttentionState& state_in) const {
  auto& state = dynamic_cast<FastWeightState&>(state_in);
  const Projected tokens = projected(query, key_value, x, {});
  if (layout.sequences() != state.rows) {
    throw Error(fmt::format("positions of {} sequences for {} rows", layout.sequences(), state.rows));
  }
  if (!state.weights.defined()) {
    if (layout.longest() > 1 && rule_ == Rule::delta) {
      const ops::DeltaRule read =
          ops::delta_rule(tokens.query, tokens.key, tokens.value, tokens.beta, layout, tokens.decay);
      state.weights = read.weights;
      return result(read.out);
    }
    if (layout.longest() > 1) {
      state.weights = weights(tokens, layout);
      return causal(tokens, layout);
    }
    state.weights = empty_weights(tokens, state.rows);
  }
  if (layout.longest() == 1 && layout.tokens() == state.rows) return step(tokens, state.weights);
  // Position by position, with the rows that are long enough.
  Tensor out = at::empty({query.size(0), heads_.width()}, query.options());
  for (int64_t position = 0; position < layout.longest(); ++position) {
    std::vector<int64_t> rows;
    std::vector<int64_t> places;  // of their positions among the tokens
    for (int64_t r = 0; r < layout.sequences(); ++r) {
      if (layout.length(r) <= position) continue;
      rows.push_back(r);
      places.push_back(layout.begin(r) + position);
    }
    const Tensor at_places = ops::index_beside(query, places);
    const Tensor at_rows = ops::index_beside(query, rows);
    const auto of_places = [&](const Tensor& all) { return all.defined() ? all.index_select(0, at_places) : all; };
    Tensor of_rows = state.weights.index_select(0, at_rows);
    out.index_copy_(0, at_places,
                    step({of_places(tokens.query), of_places(tokens.key), of_places(tokens.value),
                          of_places(tokens.beta), of_places(tokens.decay)},
                         of_rows));
    state.weights.index_copy_(0, at_rows, of_rows);
  }
  return out;
}

}  // namespace plumb
