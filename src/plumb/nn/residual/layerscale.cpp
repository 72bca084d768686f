// LayerScale, Touvron et al. 2021 (CaiT), arXiv 2103.17239: x ← x + λ∘dropout(f(norm(x))), with a trained vector λ for
// each sub-layer, initially ε, and one norm at the end of the stack. ε = 0.1 up to 18 layers, 1e-5 up to 24, 1e-6
// beyond.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

double start(int64_t layers) { return layers <= 18 ? 0.1 : layers <= 24 ? 1e-5 : 1e-6; }

class LayerScaleScheme final : public ResidualScheme {
 public:
  LayerScaleScheme(Parameters& parameters, const StackShape& shape) : shape_(shape), norms_(parameters, shape, "norm") {
    add_final_norm(parameters, shape);
    scales_ = sub_layer_vectors(parameters, shape, "layer_scale", start(shape.layers));
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Tensor y = watched_forward(f, norms_.at(f)(stream.x, context), context);
    stream.x = stream.x + scales_[static_cast<size_t>(index_of(f, shape_))] * context.dropout(y);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  StackShape shape_;
  SubLayerNorms norms_;
  std::vector<Tensor> scales_;  // [sub-layer]: (d_model)
};

const bool kLayerscaleRegistered = add_residual_scheme<LayerScaleScheme>(
    "layerscale", "LayerScale",
    "x ← x + λ∘dropout(f(norm(x))), λ a trained vector per sub-layer, initially 0.1 (1e-5 above 18 layers, 1e-6 above "
    "24), and one norm at the end of each stack",
    "Touvron et al. 2021, arXiv 2103.17239");

}  // namespace
}  // namespace plumb
