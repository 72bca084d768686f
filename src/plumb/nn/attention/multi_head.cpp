#include "plumb/nn/attention/multi_head.h"

#include "plumb/ops/attention.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

constexpr int64_t kFirstCapacity = 32;

void make_room(KeyValueCache& cache, int64_t rows, int64_t width, const at::TensorOptions& options) {
  const int64_t capacity = cache.packed.defined() ? cache.packed.size(1) : 0;
  if (cache.length < capacity) return;
  const Tensor larger = at::empty({rows, std::max(kFirstCapacity, 2 * capacity), width}, options);
  if (cache.length > 0) larger.narrow(1, 0, cache.length).copy_(cache.packed.narrow(1, 0, cache.length));
  cache.packed = larger;
}

}  // namespace

void KeyValueCache::reorder(const Tensor& order) {
  const Tensor filled = packed.narrow(1, 0, length).index_select(0, order);
  packed = at::empty({order.size(0), packed.size(1), packed.size(2)}, packed.options());
  packed.narrow(1, 0, length).copy_(filled);
}

MultiHeadAttention::MultiHeadAttention(Parameters& parameters, const std::string& prefix, int64_t d_model, int64_t heads)
    : d_model_(d_model),
      heads_(heads),
      in_weight_(parameters.add(prefix + ".in_proj_weight", {3 * d_model, d_model}, Role::stacked_qkv)),
      in_bias_(parameters.add(prefix + ".in_proj_bias", {3 * d_model}, Role::bias)),
      out_weight_(parameters.add(prefix + ".out_proj.weight", {d_model, d_model}, Role::attention_output)),
      out_bias_(parameters.add(prefix + ".out_proj.bias", {d_model}, Role::bias)) {}

Tensor MultiHeadAttention::self(const Tensor& x, const Ragged& layout, bool causal) const {
  const Tensor packed = ops::linear(x, in_weight_, in_bias_);                     // (tokens, 3·d)
  const Tensor mixed = ops::self_attention(packed, layout, heads_, causal);       // (tokens, d)
  return ops::linear(mixed, out_weight_, out_bias_);
}

Tensor MultiHeadAttention::self_step(const Tensor& x, KeyValueCache& cache) const {
  const Tensor packed = ops::linear(x, in_weight_, in_bias_);                     // (rows, 3·d)
  make_room(cache, x.size(0), 2 * d_model_, x.options());
  cache.packed.select(1, cache.length).copy_(packed.narrow(1, d_model_, 2 * d_model_));
  ++cache.length;
  const Tensor mixed = ops::cached_attention(packed.narrow(1, 0, d_model_), cache.packed, cache.length, heads_);
  return ops::linear(mixed, out_weight_, out_bias_);
}

Tensor MultiHeadAttention::project_memory(const Tensor& memory) const {
  return ops::linear(memory, in_weight_.narrow(0, d_model_, 2 * d_model_), in_bias_.narrow(0, d_model_, 2 * d_model_));
}

Tensor MultiHeadAttention::cross(const Tensor& x, const Ragged& layout, const Tensor& projected_memory, const Ragged& memory_layout) const {
  const Tensor query = ops::linear(x, in_weight_.narrow(0, 0, d_model_), in_bias_.narrow(0, 0, d_model_));
  const Tensor mixed = ops::cross_attention(query, projected_memory, layout, memory_layout, heads_);
  return ops::linear(mixed, out_weight_, out_bias_);
}

}  // namespace plumb
