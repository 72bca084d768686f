// The delta rule, Schlag et al. 2021, "Linear Transformers are secretly fast weight programmers", arXiv 2102.11174:
//   φ(x) = DPFP-ν(x) / Σ DPFP-ν(x);  β = σ(w_β·x);  v̄ = Sᵀ·φ(k);  S ← S + β·φ(k)·(v − v̄)ᵀ;  y = Sᵀ·φ(q).
// w_β: beta.weight (heads, d).
#include "plumb/nn/attention/dpfp.h"
#include "plumb/nn/attention/fast_weights.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

/// DPFP-ν(x)/Σ DPFP-ν(x); 0 if all products are 0.
Tensor normalized_dpfp(const Tensor& x, int64_t nu) {
  const Tensor phi = dpfp(x, nu);
  return phi / (phi.sum(-1, /*keepdim=*/true) + 1e-30);
}

class Delta final : public FastWeights {
 public:
  Delta(Parameters& parameters, const AttentionShape& shape, int64_t nu)
      : FastWeights(shape, Rule::delta, 2 * nu * shape.heads.size,
                    [nu](const Tensor& x) { return normalized_dpfp(x, nu); }),
        beta_(parameters.add(shape.name + ".beta.weight", {shape.heads.heads, shape.d_model}, Role::weight)) {}

 protected:
  Tensor write_strength(const Tensor& x) const override {
    return at::sigmoid(ops::matrix_product(x, beta_, false, true));
  }

 private:
  Tensor beta_;  // (heads, d)
};

const bool kDeltaRegistered = attentions().add(
    "delta", "S ← S + β·φ(k)·(v − Sᵀφ(k))ᵀ, y = Sᵀφ(q), φ that of `dpfp` (with its ν) divided by its sum, β = σ(w_β·x)",
    "Schlag et al. 2021, arXiv 2102.11174", [](Parameters& parameters, const AttentionShape& shape, const Options&) {
      return std::make_unique<Delta>(parameters, shape, dpfp_options(shape.options).nu);
    });

}  // namespace
}  // namespace plumb
