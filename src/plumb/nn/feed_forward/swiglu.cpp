// SwiGLU, Shazeer 2020, arXiv 2002.05202:  f(x) = W₂·(silu(W₁·x + b₁) ⊙ (W₃·x + b₃)) + b₂, silu(x) = x·σ(x).
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/ops/activation.h"

namespace plumb {
namespace {

class SwiGlu final : public GatedFeedForward {
 public:
  using GatedFeedForward::GatedFeedForward;

 private:
  [[nodiscard]] Tensor activation(const Tensor& x) const override { return ops::silu(x); }
};

const bool kSwigluRegistered = feed_forwards().add("swiglu", "W₂·(silu(W₁x + b₁) ⊙ (W₃x + b₃)) + b₂, silu(x) = x·σ(x)",
                                                   "Shazeer 2020, arXiv 2002.05202", makes<SwiGlu>);

}  // namespace
}  // namespace plumb
