// Hyper-connections, Zhu et al. 2024, arXiv 2409.19606: n hidden vectors per token, H of shape (n, d). A sub-layer
// reads a combination of them and writes to all, with trained coefficients A_m (n), A_r (n, n) and B (n):
//   h = A_mᵀ·H;  y = dropout(f(norm(h)));  H ← A_rᵀ·H + B·yᵀ
//   H₀ = n copies of the input;  output = norm(sum of the rows of H)
// At initialization A_m = e_(i mod n) in sub-layer i, from 0, A_r = I and B = 1, which is Pre-LN. Dynamic coefficients
// also depend on H, through Ĥ = norm(H), row by row:
//   A_m + s_α·tanh(Ĥ·W_m);  A_r + s_α·tanh(Ĥ·W_r);  B + s_β·tanh(Ĥ·W_β)
// with W_m (d), W_r (d, n) and W_β (d) initially 0, and scalars s_α and s_β initially 0.01. The paper's models also
// multiply the standard deviation of the last matrix of each sub-layer by √n, which is left to the initialization here.
#include <fmt/format.h>

#include "plumb/nn/linear.h"
#include "plumb/nn/residual/hidden_vectors.h"

namespace plumb {
namespace {

/// [model.hyper-connections]
struct HyperConnectionsOptions {
  int64_t streams = 4;
  bool dynamic = true;
};

void describe(Fields& field, HyperConnectionsOptions& options) {
  field("streams", options.streams, "n, the number of hidden vectors of a token", within(1, 1024));
  field("dynamic", options.dynamic,
        "whether the coefficients depend on the hidden vectors; `false`: they are trained parameters");
}

class HyperConnectionsScheme final : public HiddenVectorsScheme {
 public:
  HyperConnectionsScheme(Parameters& parameters, const StackShape& shape, const HyperConnectionsOptions& options)
      : HiddenVectorsScheme(parameters, shape, options.streams) {
    for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
      connections_.push_back(make_connections(parameters, layer, position, options.dynamic));
    });
    add_final_norm(parameters, shape);
  }

 private:
  /// The coefficients of a sub-layer.
  struct Connections {
    Tensor read;                 // A_m: (n)
    Tensor mix;                  // A_r: (n, n)
    Tensor write;                // B: (n)
    std::unique_ptr<Norm> norm;  // of H; null: static
    Linear dynamic;              // W_mᵀ, W_rᵀ, W_βᵀ stacked: (n + 2, d)
    Tensor scales;               // s_α, s_β: (2)
  };

  [[nodiscard]] Connections make_connections(Parameters& parameters, int64_t layer, int64_t position,
                                             bool dynamic) const {
    const std::string prefix = fmt::format("{}hyper{}.", layer_prefix(shape(), layer), position + 1);
    const int64_t n = count();
    const int64_t first = (layer * shape().sub_layers + position) % n;
    const auto in_double = at::TensorOptions(at::kDouble);
    Connections made;
    made.read = parameters.add_constant(prefix + "read", at::eye(n, in_double)[first]);
    made.mix = parameters.add_constant(prefix + "mix", at::eye(n, in_double));
    made.write = parameters.add_constant(prefix + "write", {n}, 1);
    if (!dynamic) return made;
    made.norm = norms().at(shape().norm).make(parameters, prefix + "norm", shape().d_model, shape().norm_eps);
    made.dynamic = Linear(parameters.add_constant(prefix + "dynamic", {n + 2, shape().d_model}, 0));
    made.scales = parameters.add_constant(prefix + "scales", {2}, 0.01);
    return made;
  }

  [[nodiscard]] Coefficients coefficients(size_t k, const Tensor& hidden,
                                          const ForwardContext& context) const override {
    const Connections& connections = connections_[k];
    const int64_t tokens = hidden.size(0), n = count();
    // H is multiplied by A_rᵀ, hence the transposes.
    Coefficients fixed{connections.read.expand({tokens, n}), connections.mix.t().expand({tokens, n, n}),
                       connections.write.expand({tokens, n})};
    if (!connections.norm) return fixed;
    const Tensor rows = (*connections.norm)(hidden.reshape({tokens * n, shape().d_model}), context);
    const Tensor change = at::tanh(connections.dynamic(rows)).view({tokens, n, n + 2});
    const Tensor alpha = connections.scales.select(0, 0), beta = connections.scales.select(0, 1);
    return {fixed.read + alpha * change.select(2, 0), fixed.mix + alpha * change.narrow(2, 1, n).transpose(1, 2),
            fixed.write + beta * change.select(2, n + 1)};
  }

  std::vector<Connections> connections_;  // [sub-layer]
};

const bool kHyperConnectionsRegistered = add_residual_scheme<HyperConnectionsScheme, HyperConnectionsOptions>(
    "hyper-connections", "Hyper-Connections",
    "y = dropout(f(norm(A_mᵀH))); H ← A_rᵀH + B·yᵀ for n hidden vectors H of each token, initially copies; a stack "
    "returns norm(Σ rows of H); A_m, A_r and B trained, initially e_(i mod n), I and 1, plus s·tanh(norm(H)·W), W "
    "initially 0, s 0.01",
    "Zhu et al. 2024, arXiv 2409.19606");

}  // namespace
}  // namespace plumb
