// GELU, Hendrycks & Gimpel 2016, arXiv 1606.08415:  f(x) = W₂·gelu(W₁·x + b₁) + b₂, gelu(x) = x·Φ(x), Φ the normal
// distribution function.
#include "plumb/nn/feed_forward/feed_forward.h"

namespace plumb {
namespace {

class Gelu final : public PlainFeedForward {
 public:
  using PlainFeedForward::PlainFeedForward;

 private:
  [[nodiscard]] Tensor inner(const Tensor& x, const Linear& first) const override {
    return at::gelu(first(x));
  }
};

const bool kGeluRegistered = feed_forwards().add("gelu", "W₂·gelu(W₁x + b₁) + b₂, gelu(x) = x·Φ(x)",
                                                 "Hendrycks & Gimpel 2016, arXiv 1606.08415", makes<Gelu>);

}  // namespace
}  // namespace plumb
