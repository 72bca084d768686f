// Linear attention with the features of DPFP-ν, Schlag et al. 2021, arXiv 2102.11174, and the sum rule:
//   S ← S + φ(k)·vᵀ, z ← z + φ(k);  y = Sᵀ·φ(q) / zᵀ·φ(q).
#include "plumb/nn/attention/dpfp.h"

#include "plumb/nn/attention/fast_weights.h"

namespace plumb {
namespace {

class Dpfp final : public FastWeights {
 public:
  explicit Dpfp(const AttentionShape& shape) : FastWeights(shape, Rule::normalized_sum), nu_(shape.options.dpfp_nu) {}

 protected:
  Tensor query_features(const Tensor& query, const ForwardContext&) const override { return dpfp(query, nu_); }
  Tensor key_features(const Tensor& key, const ForwardContext&) const override { return dpfp(key, nu_); }

 private:
  int64_t nu_;
};

const bool registered = attentions().add(
    "dpfp", "the same, φ(x) = [r ⊙ roll(r, 1); …; r ⊙ roll(r, ν)], r = relu([x; −x]), ν = `model.dpfp_nu`",
    "Schlag et al. 2021, arXiv 2102.11174",
    [](Parameters&, const AttentionShape& shape) { return std::make_unique<Dpfp>(shape); });

}  // namespace
}  // namespace plumb
