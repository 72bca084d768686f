// Gated DeltaNet, Yang et al. 2024, "Gated Delta Networks", arXiv 2412.06464: the delta rule on a matrix that decays.
//   S ← exp(g)·S;  S ← S + β·φ(k)·(v − Sᵀ·φ(k))ᵀ;  y = Sᵀ·φ(q);  φ(x) = silu(x)/‖silu(x)‖;  β = σ(w_β·x);
//   g = −exp(a)·softplus(w_g·x + b), as in Mamba-2; a and b trained, for each head.
// The authors draw exp(a) from [1, 16] and softplus(b) from [0.001, 0.1]; here both start at the geometric mean, so
// that only weight matrices are random. Their short convolutions, and the norm and gate after attention, belong to
// their layer, not to the rule. Kimi Delta Attention, Kimi Team 2025, "Kimi Linear", arXiv 2510.26692: the same with a
// g for each feature of the key,
//   g = −exp(a)·softplus(W↑·W↓·x + b), with one row of W↓ per feature of a head, and a b for each feature.
#include <cmath>

#include "plumb/nn/attention/fast_weights.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

/// log 4 and softplus⁻¹(0.01).
const double kLogRate = std::log(4.0);
const double kDecayBias = std::log(std::expm1(0.01));

/// Added to the sum of squares before the root.
constexpr double kNormEpsilon = 1e-6;

Tensor unit_features(const Tensor& x) {
  const Tensor y = at::silu(x);
  return y * ((y * y).sum(-1, /*keepdim=*/true) + kNormEpsilon).rsqrt();
}

class GatedDelta final : public FastWeights {
 public:
  GatedDelta(Parameters& parameters, const AttentionShape& shape, bool by_feature)
      : FastWeights(shape, Rule::delta),
        heads_(shape.heads.heads),
        each_(by_feature ? shape.heads.size : 1),
        beta_(parameters.add(shape.name + ".beta.weight", {heads_, shape.d_model}, Role::weight)) {
    if (by_feature) {
      down_ = parameters.add(shape.name + ".decay_down.weight", {shape.heads.size, shape.d_model}, Role::weight);
    }
    up_ = parameters.add(shape.name + ".decay.weight", {heads_ * each_, by_feature ? shape.heads.size : shape.d_model},
                         Role::weight);
    bias_ = parameters.add_constant(shape.name + ".decay.bias", {heads_ * each_}, kDecayBias);
    log_rate_ = parameters.add_constant(shape.name + ".decay.log_rate", {heads_, 1}, kLogRate);
  }

 protected:
  Tensor query_features(const Tensor& query, const ForwardContext&) const override { return unit_features(query); }
  Tensor key_features(const Tensor& key, const ForwardContext&) const override { return unit_features(key); }
  Tensor write_strength(const Tensor& x) const override {
    return at::sigmoid(ops::matrix_product(x, beta_, false, true));
  }
  Tensor log_decay(const Tensor& x) const override {
    const Tensor low = down_.defined() ? ops::matrix_product(x, down_, false, true) : x;
    const Tensor gate = ops::matrix_product(low, up_, false, true) + bias_;
    return -at::exp(log_rate_) * at::softplus(gate).view({x.size(0), heads_, each_});
  }

 private:
  int64_t heads_;
  int64_t each_;     // decays per head
  Tensor beta_;      // w_β, (heads, d)
  Tensor down_;      // W↓, (size, d)
  Tensor up_;        // w_g, (heads, d), or W↑, (heads·size, size)
  Tensor bias_;      // b, (heads·each)
  Tensor log_rate_;  // a, (heads, 1)
};

const bool kGatedDeltaRegistered = attentions().add(
    "gated-delta",
    "S ← exp(g)·S; S ← S + β·φ(k)·(v − Sᵀφ(k))ᵀ, y = Sᵀφ(q), φ(x) = silu(x)/‖silu(x)‖, β = σ(w_β·x), "
    "g = −exp(a)·softplus(w_g·x + b) for each head, initially exp(a) = 4 and softplus(b) = 0.01; without the authors' "
    "convolutions, and without the norm and gate after attention",
    "Gated DeltaNet: Yang et al. 2024, arXiv 2412.06464", [](Parameters& parameters, const AttentionShape& shape) {
      return std::make_unique<GatedDelta>(parameters, shape, /*by_feature=*/false);
    });

const bool kKdaRegistered = attentions().add(
    "kda",
    "as `gated-delta`, with g for each feature of the key: g = −exp(a)·softplus(W↑·W↓·x + b), W↓ of `size` rows, a for "
    "each head",
    "Kimi Delta Attention: Kimi Team 2025, arXiv 2510.26692", [](Parameters& parameters, const AttentionShape& shape) {
      return std::make_unique<GatedDelta>(parameters, shape, /*by_feature=*/true);
    });

}  // namespace
}  // namespace plumb
