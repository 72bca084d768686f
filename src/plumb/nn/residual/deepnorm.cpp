// DeepNorm, Wang et al. 2022, arXiv 2203.00555: x ← norm(α·x + dropout(f(x))), where α grows with the number of layers.
#include "plumb/nn/residual/deepnorm.h"

#include <cmath>

#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {

DeepnormConstants deepnorm_constants(const ModelDepth& depth, bool decoder) {
  const auto encoder_layers = static_cast<double>(depth.encoder_layers);
  const auto decoder_layers = static_cast<double>(depth.decoder_layers);
  if (depth.encoder_layers == 0 || depth.decoder_layers == 0) {
    const double layers = encoder_layers + decoder_layers;
    return {std::pow(2 * layers, 0.25), std::pow(8 * layers, 0.25)};
  }
  if (decoder) return {std::pow(3 * decoder_layers, 0.25), std::pow(12 * decoder_layers, 0.25)};
  const double both = std::pow(std::pow(encoder_layers, 4) * decoder_layers, 1.0 / 16);
  return {0.81 * both, both / 0.87};
}

namespace {

const bool kDeepnormRegistered = add_tensor2tensor_scheme(
    "deepnorm", "DeepNorm",
    "x ← norm(α·x + dropout(f(x))); α = (2N)^(1/4) in a single stack of N layers; with N encoder and M decoder layers "
    "0.81·(N⁴M)^(1/16) in the encoder, (3M)^(1/4) in the decoder; with the initialization `deepnorm`",
    "Wang et al. 2022, arXiv 2203.00555", "", [](const StackShape& shape, int64_t, int64_t) {
      const double alpha = deepnorm_constants(shape.model, shape.stack == StackKind::decoder).alpha;
      return SubLayerProcessing{.postprocess = "dan", .carried = alpha};
    });

}  // namespace
}  // namespace plumb
