// The position-wise feed-forward sub-layer: the interface of its kinds and their registry.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/base/registry.h"
#include "plumb/nn/context.h"
#include "plumb/nn/linear.h"
#include "plumb/nn/parameters.h"

namespace plumb {

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  /// Acts on each token independently. x: (tokens, d_model) → (tokens, d_model).
  [[nodiscard]] virtual Tensor operator()(const Tensor& x, const ForwardContext& context = {}) const = 0;
  /// Divides the inner features among the ranks. Throws Error if they are no multiple of the ranks, if this kind cannot
  /// be divided, or if it has dropout, whose masks would be those of other features.
  virtual void divide(LayerDivision& division);
};

/// Describes the feed-forward sub-layer to build.
struct FeedForwardShape {
  std::string name;  // its layer, "encoder.layers.0": prefix of its parameters
  int64_t d_model = 0;
  int64_t width = 0;  // inner width
  bool bias = true;
  LoraOptions lora{};
  double dropout = 0;  // rate in training, of the inner features
};

using FeedForwardFactory = std::function<std::unique_ptr<FeedForward>(Parameters&, const FeedForwardShape&)>;
Registry<FeedForwardFactory>& feed_forwards();

}  // namespace plumb
