// ResiDual, Xie et al. 2023, arXiv 2304.14802. Two streams: x as in Post-LN, and r, the unnormalized sum of the input
// and all sub-layer outputs, which is normalized once at the end:
//   y = dropout(f(x));  r ← r + y;  x ← norm(x + y);  r₀ = x₀;  output = x + norm(r).
// The paper's code scales r to avoid overflow in half precision and multiplies x at the end; both factors are 1 here.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class ResidualDualScheme final : public ResidualScheme {
 public:
  ResidualDualScheme(Parameters& parameters, const StackShape& shape)
      : norms_(parameters, shape, "norm"), sum_norm_(make_final_norm(parameters, last(shape))) {}

  Stream enter(const Tensor& x, ForwardContext&) const override { return {x, x}; }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor y = context.dropout(watched_forward(f, stream.x, context));
    const Tensor sum = stream.x + y;
    context.show({f.id, Point::sum}, sum);
    stream.second = stream.second + y;
    stream.x = norms_.at(f)(sum, context);
    context.show({f.id, Point::stream}, stream.x);
    if (context.watched()) {
      const at::NoGradGuard no_graph;
      context.show({f.id, Point::representation}, leave(stream, context));
    }
  }

  Tensor leave(const Stream& stream, ForwardContext& context) const override {
    return stream.x + (*sum_norm_)(stream.second, context);
  }

 private:
  /// In the paper's code, the last norm has a separate eps.
  static StackShape last(StackShape shape) {
    shape.norm_eps = 1e-7;
    return shape;
  }

  SubLayerNorms norms_;
  std::unique_ptr<Norm> sum_norm_;  // of r
};

const bool kResidualDualRegistered = add_residual_scheme<ResidualDualScheme>(
    "residual-dual", "ResiDual",
    "y = dropout(f(x)); r ← r + y; x ← norm(x + y); r₀ = x₀; a stack returns x + norm(r), where the last norm has "
    "eps 1e-7",
    "ResiDual: Xie et al. 2023, arXiv 2304.14802");

}  // namespace
}  // namespace plumb
