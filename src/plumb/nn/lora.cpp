#include "plumb/nn/lora.h"

#include <cmath>

#include "plumb/base/contains.h"
#include "plumb/ops/linear.h"

namespace plumb {

bool LoraOptions::adapts(const std::string& matrix) const { return rank > 0 && contains(matrices, matrix); }

void describe(Fields& field, LoraOptions& options) {
  field("rank", options.rank, "rank of B·A; 0: no adapters", within(0, 1 << 20));
  field("alpha", options.alpha, "what adapters add is multiplied by alpha/rank", above(0));
  field("matrices", options.matrices, "which matrices of the attentions and feed-forward sub-layers have adapters",
        one_of({"query", "key", "value", "output", "gate", "feed_forward_in", "feed_forward_out"}).each_once());
}

LoraAdapter::LoraAdapter(Parameters& parameters, const std::string& prefix, int64_t in, int64_t out,
                         const LoraOptions& options)
    : a_(parameters.add_adapter(prefix + "_lora.a", {options.rank, in}, 1 / std::sqrt(static_cast<double>(in)))),
      b_(parameters.add_adapter(prefix + "_lora.b", {out, options.rank}, 0)),
      factor_(options.alpha / static_cast<double>(options.rank)) {}

Tensor LoraAdapter::operator()(const Tensor& x) const { return ops::linear(ops::linear(x, a_, {}) * factor_, b_, {}); }

bool is_of_adapter(const std::string& parameter) {
  return parameter.ends_with("_lora.a") || parameter.ends_with("_lora.b");
}

}  // namespace plumb
