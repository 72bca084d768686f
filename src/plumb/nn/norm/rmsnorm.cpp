// RMSNorm, Zhang & Sennrich 2019, arXiv 1910.07467:  y = x/√(mean(x²) + eps)·γ over the features of a token.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

const bool kRmsnormRegistered =
    norms().add("rmsnorm", "y = x/√(mean(x²) + eps)·γ", "Zhang & Sennrich 2019, arXiv 1910.07467",
                [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
                  const Tensor gamma = parameters.add(prefix + ".weight", {width}, Role::gain);
                  return std::make_unique<TokenNorm>([=](const Tensor& x) { return ops::rms_norm(x, gamma, eps); });
                });

}  // namespace
}  // namespace plumb
