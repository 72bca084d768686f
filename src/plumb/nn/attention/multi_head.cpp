#include "plumb/nn/attention/multi_head.h"

#include <numeric>

#include "plumb/ops/linear.h"

namespace plumb {

void KeyValueCache::append(const Tensor& position) {
  std::vector<int32_t> rows(static_cast<size_t>(position.size(0)));
  std::iota(rows.begin(), rows.end(), 0);
  keys.steps.push_back(position);
  keys.ancestors.push_back(std::move(rows));
}

void KeyValueCache::reorder(const std::vector<int64_t>& order) {
  for (std::vector<int32_t>& ancestors : keys.ancestors) {
    std::vector<int32_t> moved(order.size());
    for (size_t i = 0; i < order.size(); ++i) moved[i] = ancestors[static_cast<size_t>(order[i])];
    ancestors = std::move(moved);
  }
}

MultiHeadAttention::MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model,
                                       int64_t heads)
    : d_model_(d_model),
      heads_(heads),
      in_weight_(parameters.add(prefix + ".in_proj_weight", {3 * d_model, d_model}, Role::stacked_qkv)),
      in_bias_(parameters.add(prefix + ".in_proj_bias", {3 * d_model}, Role::bias)),
      out_weight_(parameters.add(prefix + ".out_proj.weight", {d_model, d_model}, Role::attention_output)),
      out_bias_(parameters.add(prefix + ".out_proj.bias", {d_model}, Role::bias)) {}

Tensor MultiHeadAttention::self(const Tensor& x, const Ragged& layout, bool causal) const {
  const Tensor packed = ops::linear(x, in_weight_, in_bias_);                // (tokens, 3·d)
  const Tensor mixed = ops::self_attention(packed, layout, heads_, causal);  // (tokens, d)
  return ops::linear(mixed, out_weight_, out_bias_);
}

Tensor MultiHeadAttention::self_step(const Tensor& x, KeyValueCache& cache) const {
  const Tensor query = ops::linear(x, in_weight_.narrow(0, 0, d_model_), in_bias_.narrow(0, 0, d_model_));
  cache.append(project_memory(x));  // the same projection: keys and values of x
  const Tensor mixed = ops::cached_attention(query, cache.keys, heads_);
  return ops::linear(mixed, out_weight_, out_bias_);
}

Tensor MultiHeadAttention::project_memory(const Tensor& memory) const {
  return ops::linear(memory, in_weight_.narrow(0, d_model_, 2 * d_model_), in_bias_.narrow(0, d_model_, 2 * d_model_));
}

Tensor MultiHeadAttention::cross(const Tensor& x, const Ragged& layout, const Tensor& projected_memory,
                                 const Ragged& memory_layout) const {
  const Tensor query = ops::linear(x, in_weight_.narrow(0, 0, d_model_), in_bias_.narrow(0, 0, d_model_));
  const Tensor mixed = ops::cross_attention(query, projected_memory, layout, memory_layout, heads_);
  return ops::linear(mixed, out_weight_, out_bias_);
}

}  // namespace plumb
