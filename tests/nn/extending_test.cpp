// The example of extending Plumb in docs/library.md.
#include <gtest/gtest.h>

#include <memory>

#include "plumb/nn/residual/sub_layer_norms.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

// Half-way, an example:  x ← norm(x/2 + dropout(f(x))).
class HalfwayScheme final : public ResidualScheme {
 public:
  HalfwayScheme(Parameters& parameters, const StackShape& shape) : norms_(parameters, shape, "norm") {}

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor y = watched_forward(f, stream.x, context);
    const Tensor sum = context.add_dropout(stream.x / 2, y);
    context.show({f.id, Point::sum}, sum);
    stream.x = norms_.at(f)(sum, context);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  SubLayerNorms norms_;
};

const bool kHalfwayRegistered =
    add_residual_scheme<HalfwayScheme>("halfway", "Halfway", "x ← norm(x/2 + dropout(f(x)))", "this page");

TEST(Extending, HalfwayIsItsEquation) {
  Parameters parameters(at::kDouble);
  const auto scheme = make_residual_scheme("halfway", parameters, {StackKind::encoder, 1, 1, 4, "layernorm", 1e-5});
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 1));
  const Tensor x = testing::random_tensor({3, 4}, 2);

  ForwardContext context;
  Stream stream = scheme->enter(x, context);
  scheme->apply(stream, {{StackKind::encoder, 0}, 0, [](const Tensor& h) { return at::tanh(h); }}, context);
  const Tensor found = scheme->leave(stream, context);

  const Tensor sum = x / 2 + at::tanh(x);
  const Tensor centered = sum - sum.mean(1, true);
  const Tensor expected = centered / (centered.square().mean(1, true) + 1e-5).sqrt() *
                              parameters.at("encoder.layers.0.norm1.weight").value +
                          parameters.at("encoder.layers.0.norm1.bias").value;
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12);
}

}  // namespace
}  // namespace plumb
