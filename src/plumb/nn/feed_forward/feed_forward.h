// The position-wise feed-forward sub-layer: the interface of its kinds, their registry, and the two forms they take.
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

/// Dropout of the inner features of one sub-layer (fairseq's activation dropout).
class InnerDropout {
 public:
  explicit InnerDropout(const FeedForwardShape& shape) : p_(shape.dropout), place_(shape.name + ".activation") {}
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext& context) const {
    return context.dropout_at(place_, x, p_);
  }
  void require_undivided() const;

 private:
  double p_;
  std::string place_;
};

using FeedForwardFactory = std::function<std::unique_ptr<FeedForward>(Parameters&, const FeedForwardShape&)>;
Registry<FeedForwardFactory>& feed_forwards();

/// f(x) = W₂·activation(W₁·x + b₁) + b₂; W₁ and W₂ are linear1 and linear2, as in torch.nn.TransformerEncoderLayer.
/// Adapters are linear1_lora and linear2_lora.
class PlainFeedForward : public FeedForward {
 public:
  PlainFeedForward(Parameters& parameters, const FeedForwardShape& shape);
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext& context = {}) const override;
  void divide(LayerDivision& division) override;

 protected:
  /// activation(W₁·x + b₁): (tokens, d_model) → (tokens, width).
  [[nodiscard]] virtual Tensor inner(const Tensor& x, const Linear& first) const = 0;

 private:
  Linear first_;
  Linear second_;
  InnerDropout dropout_;
  Group group_;  // the ranks that divide the inner features
};

/// A gated linear unit, Dauphin et al. 2017, arXiv 1612.08083; Shazeer 2020, arXiv 2002.05202:
///   f(x) = W₂·(activation(W₁·x + b₁) ⊙ (W₃·x + b₃)) + b₂;  W₁, W₂, W₃ are linear1, linear2, linear3.
class GatedFeedForward : public FeedForward {
 public:
  GatedFeedForward(Parameters& parameters, const FeedForwardShape& shape);
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext& context = {}) const override;
  void divide(LayerDivision& division) override;

 protected:
  [[nodiscard]] virtual Tensor activation(const Tensor& x) const = 0;

 private:
  [[nodiscard]] Tensor gated(const Tensor& gate, const Tensor& content) const;

  Linear gate_;
  Linear content_;
  Linear second_;
  InnerDropout dropout_;
  Group group_;  // the ranks that divide the inner features
};

}  // namespace plumb
