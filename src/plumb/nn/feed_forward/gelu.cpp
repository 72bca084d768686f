// GELU, Hendrycks & Gimpel 2016, arXiv 1606.08415:  f(x) = W₂·gelu(W₁·x + b₁) + b₂, gelu(x) = x·Φ(x), Φ the normal
// distribution function.
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/ops/profile.h"

namespace plumb {
namespace {

class Gelu final : public PlainFeedForward {
 public:
  using PlainFeedForward::PlainFeedForward;

 private:
  [[nodiscard]] Tensor inner(const Tensor& x, const Linear& first) const override {
    const Tensor mapped = first(x);
    const ops::Timed timed("GELU", [&] { return ops::pass_cost(mapped, 2, 3); });
    return at::gelu(mapped);
  }
};

const bool kGeluRegistered = feed_forwards().add("gelu", "W₂·gelu(W₁x + b₁) + b₂, gelu(x) = x·Φ(x)",
                                                 "Hendrycks & Gimpel 2016, arXiv 1606.08415", makes<Gelu>);

}  // namespace
}  // namespace plumb
