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
// far off. Means are over the tokens of all processes that share the batch, so that all have the same averages. A
// measurement computes ψ² from its batch as a function of x (the paper's PN-V), with the exact gradient.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/autograd.h"

namespace plumb {
namespace {

constexpr double kPowerMomentum = 0.1;

/// The tokens of one pass over which means are taken: those of all processes that share the batch.
class BatchTokens {
 public:
  BatchTokens(const Tensor& x, const ForwardContext& context)
      : group_(context.group()),
        share_(context.placeholder() ? 0.0 : 1.0),
        count_(at::full({1}, share_ * static_cast<double>(x.size(0)), x.options())) {
    group_.sum(count_);
    count_.clamp_min_(1);
  }

  /// Whether this process has any.
  [[nodiscard]] bool has_own() const { return share_ > 0; }

  /// The mean of values with a row per token of this process, (rows, n) → (n).
  [[nodiscard]] Tensor mean(const Tensor& values) const { return group_.all_reduce(share_ * values.sum(0)) / count_; }

 private:
  Group group_;
  double share_;  // 0 if this process only keeps step with the others
  Tensor count_;  // (1)
};

/// x/ψ with the approximate gradient; the backward pass updates `nu`.
class Quotient : public torch::autograd::Function<Quotient> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& psi, const Tensor& nu,
                        const BatchTokens& tokens) {
    Tensor y = x / psi;
    ctx->save_for_backward({y, psi});
    ctx->saved_data["nu"] = nu;  // not a saved variable: those must not change before the backward pass
    save_value(ctx, tokens);
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& y = saved[0];
    const Tensor& psi = saved[1];
    const Tensor nu = ctx->saved_data["nu"].toTensor();
    const auto& tokens = saved_value<BatchTokens>(ctx);
    const Tensor& h = grad[0];
    const Tensor dx = tokens.has_own() ? (h - nu.clone() * y) / psi : at::zeros_like(y);
    const at::NoGradGuard no_graph;
    const std::vector<Tensor> means = tokens.mean(at::cat({y.square(), h * y}, 1)).chunk(2);
    nu.copy_(nu * (1 - kPowerMomentum * means[0]) + kPowerMomentum * means[1]);
    return {dx, Tensor(), Tensor(), Tensor()};
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
    if (context.pass() == Pass::evaluation) return x * (running_square_ + eps_).rsqrt() * gamma_ + beta_;
    const BatchTokens tokens(x, context);
    if (context.pass() == Pass::training)
      return Quotient::apply(x, advance(x, tokens), running_slope_, tokens) * gamma_ + beta_;
    return x * (tokens.mean(x.square()) + eps_).rsqrt() * gamma_ + beta_;
  }

  /// A pass reads the averages that it updates.
  [[nodiscard]] bool repeatable() const override { return false; }

 private:
  /// Returns the ψ of this step, and adds the batch to the average.
  [[nodiscard]] Tensor advance(const Tensor& x, const BatchTokens& tokens) const {
    const at::NoGradGuard no_graph;
    const Tensor square = tokens.mean(x.detach().square());
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
    "with the paper's approximate gradient; at initialization, ψ² of the batch; without the authors' code's 10,000 "
    "steps of batch statistics and its scaling of each token before",
    "Shen et al. 2020, arXiv 2003.07845", makes<PowerNorm>);

}  // namespace
}  // namespace plumb
