// HybridNorm, Zhuo et al. 2025, arXiv 2503.04598: norms within attention, and Post-LN around the feed-forward
// sub-layer.
//   attention:     x ← x + dropout(f(x)), where f normalizes the queries, keys and values of each head
//   feed-forward:  y = norm(x);  x ← y + dropout(f(y))
// and one norm at the end of the stack, which is in the paper's code but not in its text. HybridNorm*, which the paper
// prefers, treats the first layer as Pre-LN, x ← x + dropout(f(norm(x))) in all of its sub-layers, and keeps the norms
// within attention. The last sub-layer of a layer is treated as feed-forward, also with model.parallel.
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

class HybridNormScheme final : public ResidualScheme {
 public:
  HybridNormScheme(Parameters& parameters, const StackShape& shape, int64_t pre_layers)
      : sub_layers_(shape.sub_layers), pre_layers_(pre_layers) {
    for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
      norms_.push_back(layer < pre_layers || position + 1 == sub_layers_
                           ? make_sub_layer_norm(parameters, shape, "norm", layer, position)
                           : nullptr);
    });
    add_final_norm(parameters, shape);
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const auto& norm = norms_[static_cast<size_t>(f.layer() * sub_layers_ + f.position)];
    const Tensor read = norm ? (*norm)(stream.x, context) : stream.x;
    const Tensor& carried = f.layer() < pre_layers_ ? stream.x : read;
    stream.x = context.add_dropout(carried, watched_forward(f, read, context));
    context.show({f.id, Point::sum}, stream.x);
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  int64_t sub_layers_;
  int64_t pre_layers_;
  std::vector<std::unique_ptr<Norm>> norms_;  // [sub-layer]; null: reads the stream unnormalized
};

constexpr Prescription kNormsWithinAttention{.qkv_norm = true};

const bool kHybridNormRegistered = residual_schemes().add(
    "hybridnorm",
    "attention: x ← x + dropout(f(x)), with the norm over the queries, keys and values of each head; feed-forward: y = "
    "norm(x), x ← y + dropout(f(y)); and one norm at the end of each stack",
    "Zhuo et al. 2025, arXiv 2503.04598",
    {[](Parameters& parameters, const StackShape& shape, const Options&) {
       return std::make_unique<HybridNormScheme>(parameters, shape, 0);
     },
     kNormsWithinAttention});
const bool kHybridNormNamed = residual_schemes().named("hybridnorm", "HybridNorm");

const bool kHybridNormStarRegistered = residual_schemes().add(
    "hybridnorm-star", "HybridNorm*: `hybridnorm` with x ← x + dropout(f(norm(x))) in the first layer of each stack",
    "Zhuo et al. 2025, arXiv 2503.04598",
    {[](Parameters& parameters, const StackShape& shape, const Options&) {
       return std::make_unique<HybridNormScheme>(parameters, shape, 1);
     },
     kNormsWithinAttention});
const bool kHybridNormStarNamed = residual_schemes().named("hybridnorm-star", "HybridNorm*");

}  // namespace
}  // namespace plumb
