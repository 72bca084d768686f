// LayerNorm scaling, Sun et al. 2025, "The Curse of Depth in Large Language Models", arXiv 2502.05795: Pre-LN whose
// norms are divided by the square root of the depth, x ← x + dropout(f(norm(x)/√l)) in layer l, from 1, and one norm,
// not divided, at the end of the stack. Not meant for initializations that already scale with depth, such as `gpt-2`.
#include <cmath>

#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class LnsScheme final : public ResidualScheme {
 public:
  LnsScheme(Parameters& parameters, const StackShape& shape) : norms_(parameters, shape, "norm") {
    add_final_norm(parameters, shape);
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor read = norms_.at(f)(stream.x, context) / std::sqrt(static_cast<double>(f.layer() + 1));
    stream.x = context.add_dropout(stream.x, watched_forward(f, read, context));
    context.show({f.id, Point::sum}, stream.x);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  SubLayerNorms norms_;
};

const bool kLnsRegistered = add_residual_scheme<LnsScheme>(
    "lns", "LNS",
    "x ← x + dropout(f(norm(x)/√l)) in layer l = 1, 2, …, and one norm, not divided, at the end of each stack",
    "LayerNorm scaling: Sun et al. 2025, arXiv 2502.05795");

}  // namespace
}  // namespace plumb
