#include "plumb/nn/feed_forward/feed_forward.h"

#include "plumb/ops/linear.h"

namespace plumb {
namespace {

Projection into(Parameters& parameters, const FeedForwardShape& shape, const std::string& name) {
  const std::string prefix = shape.name + "." + name;
  Projection made;
  made.weight = parameters.add(prefix + ".weight", {shape.width, shape.d_model}, Role::feed_forward_input);
  if (shape.bias) made.bias = parameters.add(prefix + ".bias", {shape.width}, Role::bias);
  return made;
}

Projection out_of(Parameters& parameters, const FeedForwardShape& shape) {
  const std::string prefix = shape.name + ".linear2";
  Projection made;
  made.weight = parameters.add(prefix + ".weight", {shape.d_model, shape.width}, Role::feed_forward_output);
  if (shape.bias) made.bias = parameters.add(prefix + ".bias", {shape.d_model}, Role::bias);
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

PlainFeedForward::PlainFeedForward(Parameters& parameters, const FeedForwardShape& shape)
    : first_(into(parameters, shape, "linear1")), second_(out_of(parameters, shape)) {}

Tensor PlainFeedForward::operator()(const Tensor& x) const {
  return ops::linear(inner(x, first_), second_.weight, second_.bias);
}

GatedFeedForward::GatedFeedForward(Parameters& parameters, const FeedForwardShape& shape)
    : gate_(into(parameters, shape, "linear1")),
      content_(into(parameters, shape, "linear3")),
      second_(out_of(parameters, shape)) {}

Tensor GatedFeedForward::operator()(const Tensor& x) const {
  const Tensor gate = activation(ops::linear(x, gate_.weight, gate_.bias));
  return ops::linear(gate * ops::linear(x, content_.weight, content_.bias), second_.weight, second_.bias);
}

}  // namespace plumb
