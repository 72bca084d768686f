// Gated DeltaNet, Yang et al. 2024, "Gated Delta Networks", arXiv 2412.06464: the delta rule on a matrix that decays.
//   S ← exp(g)·S;  S ← S + β·φ(k)·(v − Sᵀ·φ(k))ᵀ;  y = Sᵀ·φ(q);  φ(x) = silu(x)/‖silu(x)‖;  β = σ(w_β·x);
//   g = −exp(a)·softplus(w_g·x + b), as in Mamba-2; a and b trained, for each head.
// As in the authors' code (NVlabs/GatedDeltaNet, flash-linear-attention), initially exp(a) ~ U(0, 16) and softplus(b)
// is log-uniform in [0.001, 0.1], so that some heads remember long and others forget fast; weight decay leaves a and b
// alone. (Qwen3-Next draws the same a, but starts from b = 1.) Their short convolutions, and the norm and gate after
// attention, belong to their layer, not to the rule. Kimi Delta Attention, Kimi Team 2025, "Kimi Linear", arXiv
// 2510.26692: the same with a g for each feature of the key,
//   g = −exp(a)·softplus(W↑·W↓·x + b), with one row of W↓ per feature of a head, and a b for each feature;
// initially exp(a) ~ U(1, 16), as in Mamba-2, and b as above.
#include <cmath>

#include "plumb/base/random.h"
#include "plumb/nn/attention/fast_weights.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

/// a with exp(a) ~ U(lowest, 16).
double draw_log_rate(Random& random, double lowest) {
  return std::log(16 - (16 - lowest) * random.uniform());  // uniform() < 1, so that exp(a) > 0
}

/// b with log softplus(b) ~ U(log 0.001, log 0.1).
double draw_decay_bias(Random& random) { return std::log(std::expm1(0.001 * std::pow(100.0, random.uniform()))); }

/// Added to the sum of squares before the root.
constexpr double kNormEpsilon = 1e-6;

Tensor unit_features(const Tensor& x) {
  const Tensor y = at::silu(x);
  return y * ((y * y).sum(-1, /*keepdim=*/true) + kNormEpsilon).rsqrt();
}

class GatedDelta final : public FastWeights {
 public:
  GatedDelta(Parameters& parameters, const AttentionShape& shape, bool by_feature)
      : FastWeights(shape, Rule::delta, shape.heads.size, unit_features),
        heads_(shape.heads.heads),
        each_(by_feature ? shape.heads.size : 1),
        beta_(parameters.add(shape.name + ".beta.weight", {heads_, shape.d_model}, Role::weight)) {
    if (by_feature) {
      down_ = parameters.add(shape.name + ".decay_down.weight", {shape.heads.size, shape.d_model}, Role::weight);
    }
    up_ = parameters.add(shape.name + ".decay.weight", {heads_ * each_, by_feature ? shape.heads.size : shape.d_model},
                         Role::weight);
    bias_ = parameters.add_drawn(shape.name + ".decay.bias", {heads_ * each_}, draw_decay_bias);
    log_rate_ = parameters.add_drawn(shape.name + ".decay.log_rate", {heads_}, [by_feature](Random& random) {
      return draw_log_rate(random, by_feature ? 1 : 0);
    });
  }

 protected:
  Tensor write_strength(const Tensor& x) const override {
    return at::sigmoid(ops::matrix_product(x, beta_, false, true));
  }
  Tensor log_decay(const Tensor& x) const override {
    const Tensor low = down_.defined() ? ops::matrix_product(x, down_, false, true) : x;
    const Tensor gate = ops::matrix_product(low, up_, false, true) + bias_;
    return -at::exp(log_rate_).view({heads_, 1}) * at::softplus(gate).view({x.size(0), heads_, each_});
  }

 private:
  int64_t heads_;
  int64_t each_;     // decays per head
  Tensor beta_;      // w_β, (heads, d)
  Tensor down_;      // W↓, (size, d)
  Tensor up_;        // w_g, (heads, d), or W↑, (heads·size, size)
  Tensor bias_;      // b, (heads·each)
  Tensor log_rate_;  // a, (heads)
};

const bool kGatedDeltaRegistered = attentions().add(
    "gated-delta",
    "S ← exp(g)·S; S ← S + β·φ(k)·(v − Sᵀφ(k))ᵀ, y = Sᵀφ(q), φ(x) = silu(x)/‖silu(x)‖, β = σ(w_β·x), "
    "g = −exp(a)·softplus(w_g·x + b) for each head, initially exp(a) ~ U(0, 16) and softplus(b) log-uniform in [0.001, "
    "0.1]; without the authors' convolutions, and without the norm and gate after attention",
    "Gated DeltaNet: Yang et al. 2024, arXiv 2412.06464",
    [](Parameters& parameters, const AttentionShape& shape, const Options&) {
      return std::make_unique<GatedDelta>(parameters, shape, /*by_feature=*/false);
    });

const bool kKdaRegistered = attentions().add(
    "kda",
    "as `gated-delta`, with g for each feature of the key: g = −exp(a)·softplus(W↑·W↓·x + b), W↓ of `size` rows, a for "
    "each head, initially exp(a) ~ U(1, 16)",
    "Kimi Delta Attention: Kimi Team 2025, arXiv 2510.26692",
    [](Parameters& parameters, const AttentionShape& shape, const Options&) {
      return std::make_unique<GatedDelta>(parameters, shape, /*by_feature=*/true);
    });

}  // namespace
}  // namespace plumb
