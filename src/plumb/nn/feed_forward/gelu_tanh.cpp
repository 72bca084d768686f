// The tanh approximation of GELU, Hendrycks & Gimpel 2016, arXiv 1606.08415, used by GPT-2 (Radford et al. 2019):
//   f(x) = W₂·gelu(W₁·x + b₁) + b₂, gelu(x) ≈ x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/ops/activation.h"

namespace plumb {
namespace {

class GeluTanh final : public PlainFeedForward {
 public:
  using PlainFeedForward::PlainFeedForward;

 private:
  [[nodiscard]] Tensor inner(const Tensor& x, const Linear& first) const override { return ops::gelu_tanh(first(x)); }
};

const bool kGeluTanhRegistered =
    feed_forwards().add("gelu-tanh", "as `gelu`, with gelu(x) ≈ x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))",
                        "Hendrycks & Gimpel 2016, arXiv 1606.08415; GPT-2: Radford et al. 2019", makes<GeluTanh>);

}  // namespace
}  // namespace plumb
