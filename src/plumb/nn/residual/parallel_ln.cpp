// Sub-layers in parallel, each with its own norm, as in GPT-NeoX: Black et al. 2022, arXiv 2204.06745. All sub-layers
// of a layer read the layer's input: x ← x + Σ dropout(f(norm(x))), and there is one norm at the end of the stack. For
// a single norm for both, as in GPT-J, use model.parallel, which makes them one sub-layer.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class ParallelLnScheme final : public ResidualScheme {
 public:
  ParallelLnScheme(Parameters& parameters, const StackShape& shape)
      : sub_layers_(shape.sub_layers), norms_(parameters, shape, "norm") {
    add_final_norm(parameters, shape);
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor input = f.position == 0 ? stream.x : stream.second;  // of the layer
    stream.x = context.add_dropout(stream.x, watched_forward(f, norms_.at(f)(input, context), context));
    stream.second = f.position + 1 < sub_layers_ ? input : Tensor();
    context.show({f.id, Point::sum}, stream.x);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  int64_t sub_layers_;
  SubLayerNorms norms_;
};

const bool kParallelLnRegistered = add_residual_scheme<ParallelLnScheme>(
    "parallel-ln", "Parallel-LN",
    "x ← x + Σ dropout(f(norm(x))) over the sub-layers of a layer, which all read the layer's input, each through its "
    "own norm, and one norm at the end of each stack",
    "GPT-NeoX: Black et al. 2022, arXiv 2204.06745");

}  // namespace
}  // namespace plumb
