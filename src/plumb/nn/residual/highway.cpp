// Highway, Srivastava et al. 2015, arXiv 1505.00387: x ← T∘dropout(f(x)) + (1 − T)∘x, T = σ(W·x + b), no norm. b is
// initially −1, so that most of x is passed through at first.
#include "plumb/nn/residual/highway.h"

#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {

HighwayGate::HighwayGate(Parameters& parameters, const std::string& prefix, int64_t d_model, double bias)
    : gate_{parameters.add(prefix + ".weight", {d_model, d_model}, Role::weight),
            parameters.add_constant(prefix + ".bias", {d_model}, bias)} {}

Tensor HighwayGate::operator()(const Tensor& x, const Tensor& y) const { return x + at::sigmoid(gate_(x)) * (y - x); }

namespace {

class HighwayScheme final : public ResidualScheme {
 public:
  HighwayScheme(Parameters& parameters, const StackShape& shape) : shape_(shape) {
    for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
      gates_.emplace_back(parameters, layer_prefix(shape, layer) + "highway" + std::to_string(position + 1),
                          shape.d_model, -1);
    });
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor y = context.dropout(watched_forward(f, stream.x, context));
    stream.x = gates_[static_cast<size_t>(index_of(f, shape_))](stream.x, y);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  StackShape shape_;
  std::vector<HighwayGate> gates_;  // [sub-layer]
};

const bool kHighwayRegistered = add_residual_scheme<HighwayScheme>(
    "highway", "Highway", "x ← T∘dropout(f(x)) + (1 − T)∘x, T = σ(W·x + b), b initially −1; no norm",
    "Srivastava et al. 2015, arXiv 1505.00387");

}  // namespace
}  // namespace plumb
