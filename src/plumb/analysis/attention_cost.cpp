#include "plumb/analysis/attention_cost.h"

#include <algorithm>
#include <chrono>

#include "plumb/base/random.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/memory.h"

namespace plumb {
namespace {

template <typename Work>
double median_seconds(int64_t runs, const Work& work) {
  constexpr double kLong = 1;      // a first run of so many seconds has paid little for being the first, and counts
  constexpr double kShort = 0.05;  // short runs are repeated until they have taken so many together
  std::vector<double> seconds;
  double sum = 0;
  for (int64_t i = 0; i <= runs || sum < kShort; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (i == 0 && runs == 1 && seconds.front() > kLong) break;
    sum += seconds.back();
    if (i == 0) seconds.clear();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

AttentionCost measure_attention_cost(const std::string& kind, const AttentionOptions& options, int64_t d_model,
                                     int64_t heads, int64_t length, int64_t runs, uint64_t seed) {
  Parameters parameters(at::kFloat);
  const auto attention = attentions().at(kind).make(parameters, {"attention", d_model, heads, options, nullptr});
  parameters.finish();
  initialise(parameters, "xavier-normal", {}, seed);
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
