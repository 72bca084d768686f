// LayerNorm, Ba et al. 2016, arXiv 1607.06450:  y = (x − μ)/√(σ² + eps)·γ + β over the features of a token.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

const bool kLayernormRegistered = norms().add(
    "layernorm", "y = (x − μ)/√(σ² + eps)·γ + β", "Ba et al. 2016, arXiv 1607.06450",
    [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
      const Tensor gamma = parameters.add(prefix + ".weight", {width}, Role::gain);
      const Tensor beta = parameters.add(prefix + ".bias", {width}, Role::shift);
      return std::make_unique<TokenNorm>([=](const Tensor& x) { return ops::layer_norm(x, gamma, beta, eps); });
    });

}  // namespace
}  // namespace plumb
