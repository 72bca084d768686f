// In float32, LibTorch's memory-efficient attention; in bfloat16, flash attention. Both read the ragged batch as it is,
// by the offsets of its sequences.
#include <cmath>

#include "plumb/ops/autograd.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/index.h"
#include "plumb/ops/precision.h"

#ifdef PLUMB_GPU_BUILT
namespace plumb::ops::gpu {
namespace {

/// What an attention reads beside its matrices.
struct Plan {
  Ragged queries, keys;
  HeadShape shape;
  bool causal = false;
  bool rounded = false;  // to bfloat16

  [[nodiscard]] double scale() const { return 1.0 / std::sqrt(static_cast<double>(shape.size)); }
};

/// (sequences + 1), int32
Tensor offsets(const Tensor& like, const Ragged& layout) { return index_beside(like, layout.offsets()).to(at::kInt); }

/// (tokens, heads·size) → (tokens, heads, size)
Tensor by_head(const Tensor& x, int64_t size) { return x.unflatten(1, {x.size(1) / size, size}); }

constexpr int64_t kCausal = 1;  // the efficient operation's number for this mask
constexpr int64_t kNoMask = 0;

/// The efficient operation has no groups of heads: keys and values are repeated. (keys, kv_heads, size) → (1, keys,
/// heads, size)
Tensor repeated(const Tensor& x, const HeadShape& shape) {
  return (shape.group() == 1 ? x : x.repeat_interleave(shape.group(), 1)).unsqueeze(0);
}

/// The reverse for a gradient.
Tensor summed(const Tensor& gradient, const HeadShape& shape) {
  const Tensor heads = gradient.squeeze(0);
  return shape.group() == 1 ? heads : heads.unflatten(1, {shape.kv_heads, shape.group()}).sum(2);
}

class Attention : public torch::autograd::Function<Attention> {
 public:
  // query: (tokens, width); key, value: (key tokens, kv_width)
  static Tensor forward(AutogradContext* ctx, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Plan& plan) {
    const int64_t size = plan.shape.size;
    const Tensor begins = offsets(query, plan.queries), key_begins = offsets(query, plan.keys);
    save_value(ctx, plan);
    if (plan.rounded) {
      const Tensor q = by_head(to_bfloat16(query), size), k = by_head(to_bfloat16(key), size);
      const Tensor v = by_head(to_bfloat16(value), size);
      const auto [out, sums, state, unused, mask] =
          at::_flash_attention_forward(q, k, v, begins, key_begins, plan.queries.longest(), plan.keys.longest(), 0,
                                       plan.causal, false, std::optional<double>(plan.scale()));
      ctx->save_for_backward({q, k, v, out, sums, state, unused, begins, key_begins});
      return out.flatten(1).to(at::kFloat);
    }
    const auto [out, sums, seed, offset, longest, longest_key] = at::_efficient_attention_forward(
        by_head(query, size).unsqueeze(0), repeated(by_head(key, size), plan.shape),
        repeated(by_head(value, size), plan.shape), std::nullopt, begins, key_begins, plan.queries.longest(),
        plan.keys.longest(), 0, plan.causal ? kCausal : kNoMask, /*compute_log_sumexp=*/true, plan.scale());
    ctx->save_for_backward({query, key, value, out, sums, seed, offset, begins, key_begins});
    return out.squeeze(0).flatten(1);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto& plan = saved_value<Plan>(ctx);
    const auto saved = ctx->get_saved_variables();
    const HeadShape& shape = plan.shape;
    if (plan.rounded) {
      refuse_second_derivatives();
      const auto [dq, dk, dv] = at::_flash_attention_backward(
          by_head(to_bfloat16(grad[0]), shape.size).contiguous(), saved[0], saved[1], saved[2], saved[3], saved[4],
          saved[7], saved[8], plan.queries.longest(), plan.keys.longest(), 0, plan.causal, saved[5], saved[6],
          std::optional<double>(plan.scale()));
      const auto wide = [](const Tensor& x) { return x.flatten(1).to(at::kFloat); };
      return {wide(dq), wide(dk), wide(dv), Tensor()};
    }
    if (at::GradMode::is_enabled()) {  // the gradient itself is differentiated
      return gradients_by_reference(ctx, {saved[0], saved[1], saved[2]}, grad, [&](const variable_list& in) {
        return variable_list{reference::attention(in[0], in[1], in[2], plan.queries, plan.keys, shape, plan.causal)};
      });
    }
    const auto [dq, dk, dv, unused] = at::_efficient_attention_backward(
        by_head(grad[0].contiguous(), shape.size).unsqueeze(0), by_head(saved[0], shape.size).unsqueeze(0),
        repeated(by_head(saved[1], shape.size), shape), repeated(by_head(saved[2], shape.size), shape), std::nullopt,
        saved[3], saved[7], saved[8], plan.queries.longest(), plan.keys.longest(), saved[4], 0, saved[5], saved[6],
        plan.causal ? kCausal : kNoMask, /*bias_requires_grad=*/false, plan.scale());
    return {dq.squeeze(0).flatten(1), summed(dk, shape).flatten(1), summed(dv, shape).flatten(1), Tensor()};
  }
};

Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& queries, const Ragged& keys,
              const HeadShape& shape, bool causal) {
  return Attention::apply(query, key, value, Plan{queries, keys, shape, causal, rounds_to_bfloat16(query)});
}

}  // namespace

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal) {
  const std::vector<Tensor> parts = packed.split_with_sizes({shape.width(), shape.kv_width(), shape.kv_width()}, 1);
  return attend(parts[0], parts[1], parts[2], layout, layout, shape, causal);
}

Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape) {
  const std::vector<Tensor> parts = packed.chunk(2, 1);
  return attend(query, parts[0], parts[1], query_layout, key_layout, shape, /*causal=*/false);
}

}  // namespace plumb::ops::gpu
#endif
