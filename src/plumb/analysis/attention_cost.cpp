#include "plumb/analysis/attention_cost.h"

#include "plumb/base/random.h"
#include "plumb/base/timing.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/memory.h"

namespace plumb {
AttentionCost measure_attention_cost(const std::string& kind, const VariantOptions& options, int64_t d_model,
                                     int64_t heads, int64_t length, int64_t runs, uint64_t seed) {
  Parameters parameters(at::kFloat);
  const auto attention =
      attentions().at(kind).make(parameters, {"attention", d_model, {heads, heads, d_model / heads}, options, nullptr});
  parameters.finish();
  initialize(parameters, "xavier-normal", {}, seed);
  Random random(seed, "attention cost");
  const Tensor packed = at::empty({length, 3 * d_model});
  const Tensor x = at::empty({length, d_model});
  fill_normal(packed, 1, random);
  fill_normal(x, 1, random);
  const Tensor leaf = packed.clone().requires_grad_(true);
  const Tensor cotangent = at::ones({length, d_model});
  const Ragged layout({length});
  const ForwardContext context;

  AttentionCost cost;
  {
    const at::NoGradGuard no_graph;
    cost.forward_seconds = median_seconds(runs, [&] { (void)attention->self(packed, x, layout, true, context); });
  }
  cost.gradient_seconds =
      median_seconds(runs, [&] { gradients({attention->self(leaf, x, layout, true, context)}, {leaf}, {cotangent}); });
  const int64_t before = ops::memory_in_use();
  const Tensor out = attention->self(leaf, x, layout, true, context);
  cost.held_bytes = ops::memory_in_use() - before;
  return cost;
}

}  // namespace plumb
