// Linear attention, Katharopoulos et al. 2020, "Transformers are RNNs", arXiv 2006.16236:
//   φ(x) = elu(x) + 1;  S ← S + φ(k)·vᵀ, z ← z + φ(k);  y = Sᵀ·φ(q) / zᵀ·φ(q).
#include "plumb/nn/attention/fast_weights.h"

namespace plumb {
namespace {

const bool kLinearRegistered = attentions().add(
    "linear", "S ← S + φ(k)vᵀ, z ← z + φ(k), y = Sᵀφ(q)/zᵀφ(q), φ(x) = elu(x) + 1",
    "Katharopoulos et al. 2020, arXiv 2006.16236",
    [](Parameters&, const AttentionShape& shape, const Options&) {
      return std::make_unique<FastWeights>(shape, FastWeights::Rule::normalized_sum, shape.heads.size,
                                           [](const Tensor& x) { return at::elu(x) + 1; });
    });

}  // namespace
}  // namespace plumb
