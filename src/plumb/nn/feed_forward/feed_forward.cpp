#include "plumb/nn/feed_forward/feed_forward.h"

#include "plumb/base/error.h"

namespace plumb {

Registry<FeedForwardFactory>& feed_forwards() {
  static Registry<FeedForwardFactory> registry(
      "feed-forward activation",
      {.title = "Feed-forward sub-layers",
       .key = "model.activation",
       .before = "W₁ and W₃ map `model.d_model` to `model.feed_forward` features, and W₂ maps back; without "
                 "`model.feed_forward_bias` there are no biases b. Φ is the normal distribution function, σ the "
                 "logistic one."});
  return registry;
}

void FeedForward::divide(LayerDivision& /*division*/) {
  throw Error("this feed-forward sub-layer cannot be divided among processes");
}

}  // namespace plumb
