// Dynamic tanh, Zhu et al. 2025, arXiv 2503.10622: y = tanh(α·x)∘γ + β, with a trained scalar α, initially 0.5. It
// computes no statistics.
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

const bool kDynamicTanhRegistered = norms().add(
    "dynamic-tanh", "y = tanh(α·x)·γ + β, α a trained scalar, initially 0.5", "Zhu et al. 2025, arXiv 2503.10622",
    [](Parameters& parameters, const std::string& prefix, int64_t width, double) {
      const Tensor alpha = parameters.add_constant(prefix + ".alpha", {1}, 0.5);
      const Tensor gamma = parameters.add(prefix + ".weight", {width}, Role::gain);
      const Tensor beta = parameters.add(prefix + ".bias", {width}, Role::shift);
      return std::make_unique<TokenNorm>([=](const Tensor& x) { return at::tanh(alpha * x) * gamma + beta; });
    });

}  // namespace
}  // namespace plumb
