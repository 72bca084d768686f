#include "plumb/nn/feed_forward.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/linear.h"

namespace plumb {

FeedForward::FeedForward(Parameters& parameters, const std::string& prefix, int64_t d_model, int64_t width,
                         const std::string& activation)
    : relu_(activation == "relu"),
      weight1_(parameters.add(prefix + ".linear1.weight", {width, d_model}, Role::feed_forward_input)),
      bias1_(parameters.add(prefix + ".linear1.bias", {width}, Role::bias)),
      weight2_(parameters.add(prefix + ".linear2.weight", {d_model, width}, Role::feed_forward_output)),
      bias2_(parameters.add(prefix + ".linear2.bias", {d_model}, Role::bias)) {
  if (activation != "relu" && activation != "gelu")
    throw Error(fmt::format("unknown activation '{}'", activation), "known: relu, gelu");
}

Tensor FeedForward::operator()(const Tensor& x) const {
  const Tensor hidden =
      relu_ ? ops::linear(x, weight1_, bias1_, ops::Activation::relu) : at::gelu(ops::linear(x, weight1_, bias1_));
  return ops::linear(hidden, weight2_, bias2_);
}

}  // namespace plumb
