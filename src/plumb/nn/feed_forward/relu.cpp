// ReLU, Vaswani et al. 2017, arXiv 1706.03762:  f(x) = W₂·max(W₁·x + b₁, 0) + b₂.
#include "plumb/nn/feed_forward/feed_forward.h"

namespace plumb {
namespace {

class Relu final : public PlainFeedForward {
 public:
  using PlainFeedForward::PlainFeedForward;

 private:
  [[nodiscard]] Tensor inner(const Tensor& x, const Linear& first) const override {
    return first(x, ops::Activation::relu);
  }
};

const bool kReluRegistered =
    feed_forwards().add("relu", "W₂·max(W₁x + b₁, 0) + b₂", "Vaswani et al. 2017, arXiv 1706.03762", makes<Relu>);

}  // namespace
}  // namespace plumb
