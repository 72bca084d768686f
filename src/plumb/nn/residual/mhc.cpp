// mHC, manifold-constrained hyper-connections, Xie et al. 2025, arXiv 2512.24880: n hidden vectors per token, X of
// shape (n, d), with coefficients that keep the signal bounded over any number of layers:
//   y = dropout(f(norm(H_pre·X)));  X ← H_res·X + H_postᵀ·yᵀ
//   X₀ = n copies of the input;  output = norm(sum of the rows of X)
//   H_pre = σ(h_pre) (n);  H_post = 2·σ(h_post) (n);  H_res = Sinkhorn(exp(h_res)) (n, n), doubly stochastic
//   h = α·(x̂·φ) + b, where x̂ is vec(X) (n·d) divided by its root mean square; α is a scalar, initially 0.01, φ a matrix
//       and b a bias for each of the three
// Sinkhorn divides columns by their sums, then rows by theirs, 20 times by default, here in logarithms.
// The paper does not specify the initial b, and public implementations differ. Here H_pre is initially 1/n, H_post 1
// and H_res near the identity (b is 0 on the diagonal and −8 elsewhere), so that, apart from α, the scheme starts as
// Pre-LN.
#include <fmt/format.h>

#include <cmath>

#include "plumb/nn/linear.h"
#include "plumb/nn/residual/hidden_vectors.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

/// [model.mhc]
struct MhcOptions {
  int64_t streams = 4;
  int64_t iterations = 20;
};

void describe(Fields& field, MhcOptions& options) {
  field("streams", options.streams, "n, the number of hidden vectors of a token", within(2, 1024));
  field("iterations", options.iterations, "Sinkhorn iterations", within(1, 10'000));
}

class MhcScheme final : public HiddenVectorsScheme {
 public:
  MhcScheme(Parameters& parameters, const StackShape& shape, const MhcOptions& options)
      : HiddenVectorsScheme(parameters, shape, options.streams), iterations_(options.iterations) {
    for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
      connections_.push_back(make_connections(parameters, layer, position));
    });
    add_final_norm(parameters, shape);
  }

 private:
  /// The parameters of a sub-layer.
  struct Connections {
    Linear map;             // φ of pre, post and res, stacked: (2n + n², n·d)
    Tensor alpha;           // of the same: (3)
    Tensor pre, post, res;  // b: (n), (n), (n, n)
  };

  [[nodiscard]] Connections make_connections(Parameters& parameters, int64_t layer, int64_t position) const {
    const std::string prefix = fmt::format("{}hyper{}.", layer_prefix(shape(), layer), position + 1);
    const int64_t n = count();
    const std::vector<int64_t> parts = {n, n, n * n};
    Connections made;
    made.map =
        Linear(parameters.add_stacked(prefix + "weight", {2 * n + n * n, n * shape().d_model}, parts, Role::weight));
    made.alpha = parameters.add_constant(prefix + "alpha", {3}, 0.01);
    made.pre = parameters.add_constant(prefix + "pre_bias", {n}, -std::log(static_cast<double>(n - 1)));  // σ: 1/n
    made.post = parameters.add_constant(prefix + "post_bias", {n}, 0);
    made.res = parameters.add_constant(prefix + "res_bias", 8 * (at::eye(n, at::TensorOptions(at::kDouble)) - 1));
    return made;
  }

  /// H_pre, H_res and H_post.
  [[nodiscard]] Coefficients coefficients(size_t k, const Tensor& hidden, const ForwardContext&) const override {
    const Connections& connections = connections_[k];
    const int64_t tokens = hidden.size(0), n = count();
    const Tensor flat = hidden.reshape({tokens, n * shape().d_model});
    const Tensor normed = ops::rms_norm(flat, at::ones({flat.size(1)}, flat.options()), shape().norm_eps);
    const Tensor all = connections.map(normed);
    const Tensor& alpha = connections.alpha;
    const Tensor pre = alpha.select(0, 0) * all.narrow(1, 0, n) + connections.pre;
    const Tensor post = alpha.select(0, 1) * all.narrow(1, n, n) + connections.post;
    const Tensor res = alpha.select(0, 2) * all.narrow(1, 2 * n, n * n).reshape({tokens, n, n}) + connections.res;
    return {at::sigmoid(pre), doubly_stochastic(res), 2 * at::sigmoid(post)};
  }

  /// (tokens, n, n) → the same. Computed as (n, n, tokens), so that each sum over n is vectorized over the tokens.
  [[nodiscard]] Tensor doubly_stochastic(const Tensor& matrices) const {
    Tensor logarithm = matrices.permute({1, 2, 0}).contiguous();
    for (int64_t i = 0; i < iterations_; ++i) {
      logarithm = at::log_softmax(logarithm, 0);  // columns sum to 1
      logarithm = at::log_softmax(logarithm, 1);  // rows
    }
    return at::exp(logarithm).permute({2, 0, 1}).contiguous();
  }

  int64_t iterations_;
  std::vector<Connections> connections_;  // [sub-layer]
};

const bool kMhcRegistered = add_residual_scheme<MhcScheme, MhcOptions>(
    "mhc", "mHC",
    "y = dropout(f(norm(H_pre·X))); X ← H_res·X + H_postᵀ·yᵀ for n hidden vectors X of each token, initially copies; a "
    "stack returns norm(Σ rows of X); H_pre = σ(h), H_post = 2σ(h), H_res = Sinkhorn(exp(h)), each with h = "
    "α·(x̂·φ) + b, x̂ = vec(X)/rms(X)",
    "Manifold-constrained hyper-connections: Xie et al. 2025, arXiv 2512.24880");

}  // namespace
}  // namespace plumb
