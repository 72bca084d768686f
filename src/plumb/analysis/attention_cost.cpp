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
      make_attention(kind, parameters, {"attention", d_model, {heads, heads, d_model / heads}, options, nullptr});
  parameters.allocate();
  initialize(parameters, {"xavier-normal"}, {}, seed);
  Random random(seed, "attention cost");
  const Tensor packed = at::empty({length, 3 * d_model}, parameters.options());
  const Tensor x = at::empty({length, d_model}, parameters.options());
  fill_normal(packed, 1, random);
  fill_normal(x, 1, random);
  const Tensor leaf = packed.clone().requires_grad_(true);
  const Tensor cotangent = at::ones({length, d_model}, parameters.options());
  const Ragged layout({length});
  const ForwardContext context;

  AttentionCost cost;
  {
    const at::NoGradGuard no_graph;
    cost.forward_seconds = median_seconds(runs, [&] {
      (void)attention->self(packed, x, layout, true, context);
      ops::synchronize(packed.device());
    });
  }
  cost.gradient_seconds = median_seconds(runs, [&] {
    gradients({attention->self(leaf, x, layout, true, context)}, {leaf}, {cotangent});
    ops::synchronize(packed.device());
  });
  const ops::HeldMemory held(leaf.device());
  const Tensor out = attention->self(leaf, x, layout, true, context);
  cost.held_bytes = held.bytes();
  return cost;
}

}  // namespace plumb
