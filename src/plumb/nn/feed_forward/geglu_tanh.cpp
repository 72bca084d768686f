// GEGLU with the tanh approximation of GELU, as in T5 1.1 (Shazeer 2020, arXiv 2002.05202):
//   f(x) = W₂·(gelu(W₁·x + b₁) ⊙ (W₃·x + b₃)) + b₂, gelu(x) ≈ x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/ops/activation.h"

namespace plumb {
namespace {

class GeGluTanh final : public GatedFeedForward {
 public:
  using GatedFeedForward::GatedFeedForward;

 private:
  [[nodiscard]] Tensor activation(const Tensor& x) const override { return ops::gelu_tanh(x); }
};

const bool kGegluTanhRegistered = feed_forwards().add("geglu-tanh", "as `geglu`, with the gelu of `gelu-tanh`",
                                                      "Shazeer 2020, arXiv 2002.05202; T5 1.1", makes<GeGluTanh>);

}  // namespace
}  // namespace plumb
