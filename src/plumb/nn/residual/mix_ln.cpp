// Mix-LN, Li et al. 2024, arXiv 2412.13795: Post-LN in the first ⌊L/4⌋ of L layers, Pre-LN in the others, and one norm
// at the end of the stack. With fewer than 4 layers none is Post-LN. In the authors' code the number of Post-LN layers
// is an option.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class MixLnScheme final : public ResidualScheme {
 public:
  MixLnScheme(Parameters& parameters, const StackShape& shape)
      : post_layers_(shape.layers / 4), norms_(parameters, shape, "norm") {
    add_final_norm(parameters, shape);
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const bool post = f.layer() < post_layers_;
    const Norm& norm = norms_.at(f);
    const Tensor y = watched_forward(f, post ? stream.x : norm(stream.x, context), context);
    const Tensor sum = context.add_dropout(stream.x, y);
    context.show({f.id, Point::sum}, sum);
    stream.x = post ? norm(sum, context) : sum;
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  int64_t post_layers_;
  SubLayerNorms norms_;
};

const bool kMixLnRegistered = add_residual_scheme<MixLnScheme>(
    "mix-ln", "Mix-LN",
    "`post-ln` in the first ⌊L/4⌋ of L layers, none of fewer than 4, `pre-ln` in the others, and one norm at the end "
    "of each stack",
    "Li et al. 2024, arXiv 2412.13795");

}  // namespace
}  // namespace plumb
