// GEGLU, Shazeer 2020, arXiv 2002.05202:  f(x) = W₂·(gelu(W₁·x + b₁) ⊙ (W₃·x + b₃)) + b₂, gelu(x) = x·Φ(x).
#include "plumb/nn/feed_forward/feed_forward.h"

namespace plumb {
namespace {

class GeGlu final : public GatedFeedForward {
 public:
  using GatedFeedForward::GatedFeedForward;

 private:
  [[nodiscard]] Tensor activation(const Tensor& x) const override { return at::gelu(x); }
};

const bool kGegluRegistered = feed_forwards().add("geglu", "W₂·(gelu(W₁x + b₁) ⊙ (W₃x + b₃)) + b₂, gelu(x) = x·Φ(x)",
                                                  "Shazeer 2020, arXiv 2002.05202", makes<GeGlu>);

}  // namespace
}  // namespace plumb
