// The feed-forward sub-layers, which differ in their activation and in whether it is a gate. W₁, W₂ and W₃ are linear1,
// linear2 and linear3, as in torch.nn.TransformerEncoderLayer; their adapters are linear1_lora and so on. Gated linear
// units are those of Dauphin et al. 2017, arXiv 1612.08083.
#include "plumb/nn/feed_forward/feed_forward.h"

#include "plumb/base/error.h"
#include "plumb/ops/activation.h"

namespace plumb {
namespace {

struct ActivationKind {
  const char* name;
  const char* equation;
  const char* citation;
  Tensor (*of_layer)(const Linear& first, const Tensor& x);  // activation(W₁·x + b₁)
  bool gated = false;                                        // whether it is multiplied by W₃·x + b₃
};

Tensor relu_of(const Linear& first, const Tensor& x) { return first(x, ops::Activation::relu); }
Tensor gelu_of(const Linear& first, const Tensor& x) { return at::gelu(first(x)); }
Tensor gelu_tanh_of(const Linear& first, const Tensor& x) { return ops::gelu_tanh(first(x)); }
Tensor silu_of(const Linear& first, const Tensor& x) { return ops::silu(first(x)); }

const ActivationKind kActivations[] = {
    {"relu", "W₂·max(W₁x + b₁, 0) + b₂", "Vaswani et al. 2017, arXiv 1706.03762", relu_of},
    {"gelu", "W₂·gelu(W₁x + b₁) + b₂, gelu(x) = x·Φ(x)", "Hendrycks & Gimpel 2016, arXiv 1606.08415", gelu_of},
    {"gelu-tanh", "as `gelu`, with gelu(x) ≈ x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))",
     "Hendrycks & Gimpel 2016, arXiv 1606.08415; GPT-2: Radford et al. 2019", gelu_tanh_of},
    {"silu", "W₂·silu(W₁x + b₁) + b₂, silu(x) = x·σ(x)", "Ramachandran et al. 2017, arXiv 1710.05941", silu_of},
    {"geglu", "W₂·(gelu(W₁x + b₁) ⊙ (W₃x + b₃)) + b₂, gelu(x) = x·Φ(x)", "Shazeer 2020, arXiv 2002.05202", gelu_of,
     true},
    {"geglu-tanh", "as `geglu`, with the gelu of `gelu-tanh`", "Shazeer 2020, arXiv 2002.05202; T5 1.1", gelu_tanh_of,
     true},
    {"swiglu", "W₂·(silu(W₁x + b₁) ⊙ (W₃x + b₃)) + b₂, silu(x) = x·σ(x)", "Shazeer 2020, arXiv 2002.05202", silu_of,
     true}};

Linear inner_layer(Parameters& parameters, const FeedForwardShape& shape, const std::string& name) {
  const std::string prefix = shape.name + "." + name;
  Linear layer(parameters, prefix, shape.width, shape.d_model, Role::feed_forward_input, shape.bias);
  layer.adapt(parameters, shape.lora, "feed_forward_in", prefix);
  return layer;
}

Linear outer_layer(Parameters& parameters, const FeedForwardShape& shape) {
  const std::string prefix = shape.name + ".linear2";
  Linear layer(parameters, prefix, shape.d_model, shape.width, Role::feed_forward_output, shape.bias);
  layer.adapt(parameters, shape.lora, "feed_forward_out", prefix);
  return layer;
}

class ActivatedFeedForward final : public FeedForward {
 public:
  ActivatedFeedForward(const ActivationKind& activation, Parameters& parameters, const FeedForwardShape& shape)
      : activation_(activation),
        first_(inner_layer(parameters, shape, "linear1")),
        content_(activation.gated ? inner_layer(parameters, shape, "linear3") : Linear()),
        second_(outer_layer(parameters, shape)),
        dropout_(shape.dropout),
        dropout_place_(shape.name + ".activation") {}

  [[nodiscard]] Tensor operator()(const Tensor& input, const ForwardContext& context) const override {
    const Tensor x = group_.copy_to_region(input);
    const Tensor content = content_ ? content_(x) : Tensor();
    Tensor inner = activation_.of_layer(first_, x);
    if (content_) inner = inner * content;
    return second_(context.dropout_at(dropout_place_, inner, dropout_));
  }

  void divide(LayerDivision& division) override {
    if (dropout_ > 0)
      throw Error("a feed-forward sub-layer with dropout of its inner features cannot be divided among processes",
                  "set model.activation_dropout = 0");
    first_.divide_outputs(division);
    if (content_) content_.divide_outputs(division);
    second_.divide_inputs(division);
    group_ = division.group();
  }

 private:
  const ActivationKind& activation_;
  Linear first_, content_, second_;  // in the order in which their parameters are declared
  double dropout_;                   // of the inner features (fairseq's activation dropout)
  std::string dropout_place_;
  Group group_;  // the ranks that divide the inner features
};

[[maybe_unused]] const bool kFeedForwardsRegistered = [] {
  for (const ActivationKind& activation : kActivations) {
    feed_forwards().add(activation.name, activation.equation, activation.citation,
                        [&activation](Parameters& parameters, const FeedForwardShape& shape) {
                          return std::make_unique<ActivatedFeedForward>(activation, parameters, shape);
                        });
  }
  return true;
}();

}  // namespace

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
