// Norms that treat each token by itself, in every pass.
//   layernorm     y = (x − μ)/√(σ² + eps)·γ + β over the features: Ba et al. 2016, arXiv 1607.06450
//   rmsnorm       y = x/√(mean(x²) + eps)·γ over the features: Zhang & Sennrich 2019, arXiv 1910.07467
//   scalenorm     y = g·x/√(‖x‖² + eps), with a trained scalar g, initially √d: Nguyen & Salazar 2019, arXiv
//                 1910.05895. Equals RMSNorm with all gains g/√d and with eps/d.
//   noam          tensor2tensor's y = √d·x/√(‖x‖² + eps), without parameters. Equals RMSNorm without gains and with
//                 eps/d.
//   dynamic-tanh  y = tanh(α·x)∘γ + β, with a trained scalar α, initially 0.5, and no statistics: Zhu et al. 2025,
//                 arXiv 2503.10622
//   none          y = x
#include <cmath>
#include <utility>

#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

class TokenNorm final : public Norm {
 public:
  explicit TokenNorm(std::function<Tensor(const Tensor&)> of_tokens) : of_tokens_(std::move(of_tokens)) {}
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override { return of_tokens_(x); }

 private:
  std::function<Tensor(const Tensor&)> of_tokens_;
};

const bool kTokenNormsRegistered =
    norms().add(
        "layernorm", "y = (x − μ)/√(σ² + eps)·γ + β", "Ba et al. 2016, arXiv 1607.06450",
        [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
          const Tensor gamma = parameters.add(prefix + ".weight", {width}, Role::gain);
          const Tensor beta = parameters.add(prefix + ".bias", {width}, Role::shift);
          return std::make_unique<TokenNorm>([=](const Tensor& x) { return ops::layer_norm(x, gamma, beta, eps); });
        }) &&
    norms().add("rmsnorm", "y = x/√(mean(x²) + eps)·γ", "Zhang & Sennrich 2019, arXiv 1910.07467",
                [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
                  const Tensor gamma = parameters.add(prefix + ".weight", {width}, Role::gain);
                  return std::make_unique<TokenNorm>([=](const Tensor& x) { return ops::rms_norm(x, gamma, eps); });
                }) &&
    norms().add("scalenorm", "y = g·x/√(‖x‖² + eps), g a trained scalar, initially √d",
                "Nguyen & Salazar 2019, arXiv 1910.05895",
                [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
                  const auto d = static_cast<double>(width);
                  const Tensor gain = parameters.add_constant(prefix + ".weight", {1}, std::sqrt(d));
                  return std::make_unique<TokenNorm>([=](const Tensor& x) {
                    return ops::rms_norm(x, (gain / std::sqrt(d)).expand({width}).contiguous(), eps / d);
                  });
                }) &&
    norms().add("noam", "y = √d·x/√(‖x‖² + eps)", "tensor2tensor, `layers/common_layers.py`",
                [](Parameters&, const std::string&, int64_t width, double eps) {
                  return std::make_unique<TokenNorm>([eps = eps / static_cast<double>(width)](const Tensor& x) {
                    return ops::rms_norm(x, at::ones({x.size(1)}, x.options()), eps);
                  });
                }) &&
    norms().add(
        "dynamic-tanh", "y = tanh(α·x)·γ + β, α a trained scalar, initially 0.5", "Zhu et al. 2025, arXiv 2503.10622",
        [](Parameters& parameters, const std::string& prefix, int64_t width, double) {
          const Tensor alpha = parameters.add_constant(prefix + ".alpha", {1}, 0.5);
          const Tensor gamma = parameters.add(prefix + ".weight", {width}, Role::gain);
          const Tensor beta = parameters.add(prefix + ".bias", {width}, Role::shift);
          return std::make_unique<TokenNorm>([=](const Tensor& x) { return at::tanh(alpha * x) * gamma + beta; });
        }) &&
    norms().add("none", "y = x", "", [](Parameters&, const std::string&, int64_t, double) {
      return std::make_unique<TokenNorm>([](const Tensor& x) { return x; });
    });

}  // namespace
}  // namespace plumb
