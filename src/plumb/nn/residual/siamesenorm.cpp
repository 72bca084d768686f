// SiameseNorm, Li et al. 2026, arXiv 2602.08064. Two streams share the sub-layers: x, normalized as in Post-LN, and y,
// the plain sum of Pre-LN. In layer l, from 1, with norms N₁, N₂ and N₃ for each sub-layer:
//   x ← N₁(x);  z = dropout(f(N₃(x + N₂(y))));  x ← x + z/√(2l);  y ← y + z
//   x₀ = y₀ = the input;  output = norm(N(x) + N'(y))
// The factor and N₃ are as in the paper's code for vision Transformers. Its code for language models combines the
// scheme with HybridNorm, which is not done here.
#include <cmath>

#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class SiameseNormScheme final : public ResidualScheme {
 public:
  SiameseNormScheme(Parameters& parameters, const StackShape& shape)
      : norms_(parameters, shape, "norm"),
        second_norms_(parameters, shape, "second_norm"),
        inner_norms_(parameters, shape, "inner_norm"),
        last_norm_(make_final_norm(parameters, shape, "first_norm")),
        last_second_norm_(make_final_norm(parameters, shape, "second_norm")) {
    add_final_norm(parameters, shape);
  }

  Stream enter(const Tensor& x, ForwardContext&) const override { return {x, x}; }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor x = norms_.at(f)(stream.x, context);
    const Tensor both = x + second_norms_.at(f)(stream.second, context);
    const Tensor z = context.dropout(watched_forward(f, inner_norms_.at(f)(both, context), context));
    stream.x = x + z / std::sqrt(2 * static_cast<double>(f.layer() + 1));
    stream.second = stream.second + z;
    context.show({f.id, Point::sum}, stream.x);
    context.show({f.id, Point::stream}, stream.x);
  }

  Tensor leave(const Stream& stream, ForwardContext& context) const override {
    const Tensor both = (*last_norm_)(stream.x, context) + (*last_second_norm_)(stream.second, context);
    return ResidualScheme::leave({both}, context);
  }

 private:
  SubLayerNorms norms_;
  SubLayerNorms second_norms_;
  SubLayerNorms inner_norms_;
  std::unique_ptr<Norm> last_norm_;
  std::unique_ptr<Norm> last_second_norm_;
};

const bool kSiameseNormRegistered = add_residual_scheme<SiameseNormScheme>(
    "siamesenorm", "SiameseNorm",
    "x ← N₁(x); z = dropout(f(N₃(x + N₂(y)))); x ← x + z/√(2l) in layer l = 1, 2, …; y ← y + z; x₀ = y₀; a stack "
    "returns norm(N(x) + N′(y)); each N is a separate norm",
    "Li et al. 2026, arXiv 2602.08064");

}  // namespace
}  // namespace plumb
