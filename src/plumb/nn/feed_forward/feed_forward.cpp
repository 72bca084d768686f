#include "plumb/nn/feed_forward/feed_forward.h"

#include "plumb/base/error.h"

namespace plumb {
namespace {

Linear into(Parameters& parameters, const FeedForwardShape& shape, const std::string& name) {
  const std::string prefix = shape.name + "." + name;
  Linear made(parameters, prefix, shape.width, shape.d_model, Role::feed_forward_input, shape.bias);
  made.adapt(parameters, shape.lora, "feed_forward_in", prefix);
  return made;
}

Linear out_of(Parameters& parameters, const FeedForwardShape& shape) {
  const std::string prefix = shape.name + ".linear2";
  Linear made(parameters, prefix, shape.d_model, shape.width, Role::feed_forward_output, shape.bias);
  made.adapt(parameters, shape.lora, "feed_forward_out", prefix);
  return made;
}

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

void InnerDropout::require_undivided() const {
  if (p_ > 0)
    throw Error("a feed-forward sub-layer with dropout of its inner features cannot be divided among processes",
                "set model.activation_dropout = 0");
}

PlainFeedForward::PlainFeedForward(Parameters& parameters, const FeedForwardShape& shape)
    : first_(into(parameters, shape, "linear1")), second_(out_of(parameters, shape)), dropout_(shape) {}

Tensor PlainFeedForward::operator()(const Tensor& x, const ForwardContext& context) const {
  return second_(dropout_(inner(group_.copied(x), first_), context));
}

void PlainFeedForward::divide(LayerDivision& division) {
  dropout_.require_undivided();
  first_.divide_outputs(division);
  second_.divide_inputs(division);
  group_ = division.group();
}

GatedFeedForward::GatedFeedForward(Parameters& parameters, const FeedForwardShape& shape)
    : gate_(into(parameters, shape, "linear1")),
      content_(into(parameters, shape, "linear3")),
      second_(out_of(parameters, shape)),
      dropout_(shape) {}

Tensor GatedFeedForward::operator()(const Tensor& input, const ForwardContext& context) const {
  const Tensor x = group_.copied(input);
  return second_(dropout_(gated(gate_(x), content_(x)), context));
}

Tensor GatedFeedForward::gated(const Tensor& gate, const Tensor& content) const {
  return activation(gate) * content;
}

void GatedFeedForward::divide(LayerDivision& division) {
  dropout_.require_undivided();
  gate_.divide_outputs(division);
  content_.divide_outputs(division);
  second_.divide_inputs(division);
  group_ = division.group();
}

}  // namespace plumb
