// Admin, Liu et al. 2020, arXiv 2004.08249: x ← norm(ω∘x + dropout(f(x))), with a trained vector ω for each sub-layer.
// A profiling pass through the initialized model sets ω: 1 in the first sub-layer of a stack, then ω² ← Var[ω·x] +
// Var[f(x)] of the previous sub-layer, with variances over all elements of the batch. The authors' code
// (Transformer-Clinic) profiles the first batch of the data, with dropout; here the pass uses random tokens without
// dropout, so that an initialized model depends only on configuration and seed. Model::profile accepts any batch.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class AdminScheme final : public ResidualScheme {
 public:
  AdminScheme(Parameters& parameters, const StackShape& shape)
      : shape_(shape), norms_(parameters, shape, "norm"), omegas_(sub_layer_vectors(parameters, shape, "omega", 1)) {}

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const auto index = static_cast<size_t>(index_of(f, shape_));
    const Tensor y = watched_forward(f, stream.x, context);
    const Tensor carried = omegas_[index] * stream.x;
    if (context.pass() == Pass::profiling && index + 1 < omegas_.size()) {
      const at::NoGradGuard no_graph;
      const Tensor variance = carried.var(/*unbiased=*/false) + y.var(/*unbiased=*/false);
      omegas_[index + 1].detach().fill_(variance.sqrt());
    }
    const Tensor sum = context.add_dropout(carried, y);
    context.show({f.id, Point::sum}, sum);
    stream.x = norms_.at(f)(sum, context);
    context.show({f.id, Point::stream}, stream.x);
  }

  [[nodiscard]] bool profiled() const override { return true; }

 private:
  StackShape shape_;
  SubLayerNorms norms_;
  std::vector<Tensor> omegas_;  // [sub-layer]: (d_model)
};

const bool kAdminRegistered = add_residual_scheme<AdminScheme>(
    "admin", "Admin",
    "x ← norm(ω∘x + dropout(f(x))), ω a trained vector per sub-layer, 1 in the first and set by a profiling "
    "pass in the others: ω² ← Var[ω·x] + Var[f(x)] of the previous sub-layer; the pass has random tokens and no "
    "dropout (the authors' code: a batch of the data, with dropout), so that ω depends on the seed alone",
    "Liu et al. 2020, arXiv 2004.08249");

}  // namespace
}  // namespace plumb
