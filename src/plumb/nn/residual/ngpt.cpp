// nGPT, the normalized Transformer, Loshchilov et al. 2024, arXiv 2410.01131. Hidden states h and sub-layer outputs are
// normalized to length 1, n(x) = x/‖x‖, and each sub-layer moves h toward its output:
//   h ← n(h + α∘(n(dropout(f(√d·h))) − h));  h₀ = n(input);  a stack returns h
// α (d) is trained for each sub-layer: α = |a|·α₀·√d with a initially 1/√d, so that α is initially α₀ = 0.05, and Adam
// changes it as fast as other parameters. There are no other norms.
// A sub-layer reads √d·h, whose elements are of order 1: in nGPT this factor is part of the scales of the feed-forward
// sub-layer (of both branches in its code, of the gate in the paper), and in attention it cancels, because queries,
// keys and outputs are normalized. The rest is left to the model: see Prescription::unit_matrices, and for queries and
// keys MultiHeadOptions::unit_query_key. The feed-forward sub-layer has no trained scales s_u and s_v. nGPT also has no
// biases, and uses rotary positions, `swiglu`, and separate embedding and output matrices; set these in [model].
#include <cmath>

#include "plumb/nn/residual/sub_layer_norms.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

/// [model.ngpt]
struct NgptOptions {
  double alpha = 0.05;
};

void describe(Fields& field, NgptOptions& options) {
  field("alpha", options.alpha, "α at initialization; nGPT recommends the order of 1/layers", above(0));
}

/// x/‖x‖, with a small constant that prevents division by zero.
Tensor on_sphere(const Tensor& x) {
  const auto width = static_cast<double>(x.size(1));
  return ops::rms_norm(x, at::full({x.size(1)}, 1 / std::sqrt(width), x.options()), 1e-12 / width);
}

class NgptScheme final : public ResidualScheme {
 public:
  NgptScheme(Parameters& parameters, const StackShape& shape, const NgptOptions& options)
      : shape_(shape),
        root_(std::sqrt(static_cast<double>(shape.d_model))),
        alpha_(options.alpha),
        rates_(sub_layer_vectors(parameters, shape, "alpha", 1 / root_)) {}

  Stream enter(const Tensor& x, ForwardContext&) const override { return {on_sphere(x)}; }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor& h = stream.x;
    const Tensor target = on_sphere(context.dropout(watched_forward(f, root_ * h, context)));
    const Tensor rate = (alpha_ * root_) * at::abs(rates_[static_cast<size_t>(index_of(f, shape_))]);
    const Tensor sum = h + rate * (target - h);
    context.show({f.id, Point::sum}, sum);
    stream.x = on_sphere(sum);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  StackShape shape_;
  double root_;  // √d
  double alpha_;
  std::vector<Tensor> rates_;  // [sub-layer]: a, (d)
};

const bool kNgptRegistered = add_residual_scheme<NgptScheme, NgptOptions>(
    "ngpt", "nGPT",
    "h ← n(h + α∘(n(dropout(f(√d·h))) − h)), n(x) = x/‖x‖, h₀ = n(x), α = abs(a)·α₀·√d with a trained vector a per "
    "sub-layer, initially 1/√d; no norm; rows or columns of length d of all matrices have length 1 after every step, "
    "queries and keys of length 1 in each head times a trained vector, after their rotation, and a trained scale for "
    "each logit",
    "Loshchilov et al. 2024, arXiv 2410.01131", Prescription{.unit_matrices = true});

}  // namespace
}  // namespace plumb
