// Keel, Chen & Wei 2026, arXiv 2601.19895: x ← norm(α·x + dropout(f(inner_norm(x)))), where α is the number of
// sub-layers of the stack: Post-LN with a scaled residual and a second norm on the branch. The equation and α come from
// summaries of the paper and have not been checked against its text; the authors have published no code.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class KeelScheme final : public ResidualScheme {
 public:
  KeelScheme(Parameters& parameters, const StackShape& shape)
      : alpha_(static_cast<double>(shape.layers * shape.sub_layers)),
        inner_(parameters, shape, "inner_norm"),
        outer_(parameters, shape, "norm") {}

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor y = watched_forward(f, inner_.at(f)(stream.x, context), context);
    const Tensor sum = context.add_dropout(alpha_ * stream.x, y);
    context.show({f.id, Point::sum}, sum);
    stream.x = outer_.at(f)(sum, context);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  double alpha_;
  SubLayerNorms inner_;
  SubLayerNorms outer_;
};

const bool kKeelRegistered = add_residual_scheme<KeelScheme>(
    "keel", "Keel",
    "x ← norm(α·x + dropout(f(inner_norm(x)))), α the number of sub-layers of the stack (from summaries "
    "of the paper, not checked against its text)",
    "Chen & Wei 2026, arXiv 2601.19895");

}  // namespace
}  // namespace plumb
