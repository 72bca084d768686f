// SiLU, or Swish with β = 1, Ramachandran et al. 2017, arXiv 1710.05941:  f(x) = W₂·silu(W₁·x + b₁) + b₂,
// silu(x) = x·σ(x).
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/ops/activation.h"

namespace plumb {
namespace {

class Silu final : public PlainFeedForward {
 public:
  using PlainFeedForward::PlainFeedForward;

 private:
  [[nodiscard]] Tensor inner(const Tensor& x, const Linear& first) const override { return ops::silu(first(x)); }
};

const bool kSiluRegistered = feed_forwards().add("silu", "W₂·silu(W₁x + b₁) + b₂, silu(x) = x·σ(x)",
                                                 "Ramachandran et al. 2017, arXiv 1710.05941", makes<Silu>);

}  // namespace
}  // namespace plumb
