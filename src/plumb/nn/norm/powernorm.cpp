// PowerNorm, Shen et al. 2020, arXiv 2003.07845: y = x/√(ψ² + eps)·γ + β for each feature, where ψ² is the running
// average over training steps of the mean of x² over the tokens of the batch: ψ² ← 0.9·ψ² + 0.1·mean(x²).
//
// In training, ψ comes from earlier steps and does not depend on x; the contribution of a batch statistic to the
// gradient is approximated with a running average ν (Algorithm 2 of the paper). With x̂ = x/ψ, h = γ∘∂L/∂y, and means
// over tokens,
//   ∂L/∂x = (h − ν∘x̂)/ψ,   ν ← ν∘(1 − 0.1·mean(x̂²)) + 0.1·mean(h∘x̂).
// The authors' code (sIncerass/powernorm) differs: it normalizes with the statistics of the batch for the first 10,000
// steps, first divides each token by the root mean square of its features (or groups of them), and in the gradient
// divides by the batch's ψ. Here, the first step takes ψ from its own batch, because without that warm-up ψ would start
// far off. Each process has its own averages, of its own tokens. A measurement computes ψ² from its batch as a function
// of x (the paper's PN-V), with the exact gradient.
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

constexpr double kPowerMomentum = 0.1;

/// x/ψ with the approximate gradient; the backward pass updates `nu`.
class Quotient : public torch::autograd::Function<Quotient> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& psi, const Tensor& nu) {
    Tensor y = x / psi;
    ctx->save_for_backward({y, psi});
    ctx->saved_data["nu"] = nu;  // not a saved variable: those must not change before the backward pass
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& y = saved[0];
    const Tensor& psi = saved[1];
    const Tensor nu = ctx->saved_data["nu"].toTensor();
    const Tensor& h = grad[0];
    const Tensor dx = (h - nu.clone() * y) / psi;
    const at::NoGradGuard no_graph;
    const Tensor kept = 1 - kPowerMomentum * y.square().mean(0);
    nu.copy_(nu * kept + kPowerMomentum * (h * y).mean(0));
    return {dx, Tensor(), Tensor()};
  }
};

class PowerNorm final : public Norm {
 public:
  PowerNorm(Parameters& parameters, const std::string& prefix, int64_t width, double eps)
      : gamma_(parameters.add(prefix + ".weight", {width}, Role::gain)),
        beta_(parameters.add(prefix + ".bias", {width}, Role::shift)),
        running_square_(parameters.add_buffer(prefix + ".running_phi", {width}, 1)),
        running_slope_(parameters.add_buffer(prefix + ".running_nu", {width}, 0)),
        steps_(parameters.add_buffer(prefix + ".steps", {1}, 0)),
        eps_(eps) {}

  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext& context) const override {
    if (context.pass() == Pass::training && !context.idle())
      return Quotient::apply(x, advance(x), running_slope_) * gamma_ + beta_;
    const bool running = context.pass() == Pass::evaluation || context.idle();
    const Tensor square = running ? running_square_ : x.square().mean(0);
    return x * (square + eps_).rsqrt() * gamma_ + beta_;
  }

 private:
  /// Returns the ψ of this step, and adds the batch to the average.
  [[nodiscard]] Tensor advance(const Tensor& x) const {
    const at::NoGradGuard no_graph;
    const Tensor square = x.detach().square().mean(0);
    running_square_.copy_(at::where(steps_ == 0, square, running_square_));
    Tensor psi = (running_square_ + eps_).sqrt();
    running_square_.lerp_(square, kPowerMomentum);
    steps_.add_(1);
    return psi;
  }

  Tensor gamma_;           // (width)
  Tensor beta_;            // (width)
  Tensor running_square_;  // (width): ψ²
  Tensor running_slope_;   // (width): ν
  Tensor steps_;           // (1)
  double eps_;
};

const bool kPowernormRegistered = norms().add(
    "powernorm",
    "y = x/√(ψ² + eps)·γ + β for each feature, ψ² the running average over steps of mean(x²) over the batch's tokens, "
    "with the paper's approximate gradient; at initialization, ψ² of the batch; each process has its own averages; "
    "without the authors' code's 10,000 steps of batch statistics and its scaling of each token before",
    "Shen et al. 2020, arXiv 2003.07845",
    [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
      return std::make_unique<PowerNorm>(parameters, prefix, width, eps);
    });

}  // namespace
}  // namespace plumb
