// LayerNorm, Ba et al. 2016, arXiv 1607.06450:  y = (x − μ)/√(σ² + eps)·γ + β over the features of a token.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

class LayerNorm final : public Norm {
 public:
  LayerNorm(Parameters& parameters, const std::string& prefix, int64_t width, double eps)
      : gamma_(parameters.add(prefix + ".weight", {width}, Role::gain)),
        beta_(parameters.add(prefix + ".bias", {width}, Role::shift)),
        eps_(eps) {}
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override {
    return ops::layer_norm(x, gamma_, beta_, eps_);
  }

 private:
  Tensor gamma_;  // (width)
  Tensor beta_;   // (width)
  double eps_;
};

const bool kLayernormRegistered =
    norms().add("layernorm", "y = (x − μ)/√(σ² + eps)·γ + β", "Ba et al. 2016, arXiv 1607.06450", makes<LayerNorm>);

}  // namespace
}  // namespace plumb
