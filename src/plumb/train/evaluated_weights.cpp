#include "plumb/train/evaluated_weights.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

EvaluatedWeights::EvaluatedWeights(Model& model, const Optimizer& optimizer, double decay)
    : model_(&model),
      optimizer_(&optimizer),
      decay_(decay),
      constrained_(prescription_of(model.config().residual).unit_matrices) {
  if (!optimizer.averages_weights()) return;
  if (decay > 0) {
    throw Error(
        fmt::format("train.average_decay = {} cannot be combined with an optimizer that averages the weights", decay),
        "set it to 0, or choose another train.optimizer");
  }
  if (constrained_) {
    throw Error(
        fmt::format("model.residual = \"{}\" changes the weights after every step, which cannot be combined with an "
                    "optimizer that averages them",
                    model.config().residual),
        "choose another train.optimizer");
  }
}

void EvaluatedWeights::add(int64_t t) {
  if (decay_ == 0) return;
  const at::NoGradGuard no_graph;
  const Tensor& weights = model_->parameters().flat();
  if (average_.defined() && t > 1) {
    average_.lerp_(weights, (1 - decay_) / (1 - std::pow(decay_, static_cast<double>(t))));
  } else {
    average_ = weights.clone();
  }
  if (!constrained_) return;
  const ShownWeights shown(*this);
  model_->constrain();
  average_.copy_(weights);
}

void EvaluatedWeights::show() {
  if (shown() || !differ()) return;
  const at::NoGradGuard no_graph;
  const Tensor evaluated = flat();
  hidden_ = model_->parameters().flat().clone();
  model_->parameters().flat().copy_(evaluated);
}

void EvaluatedWeights::hide() {
  if (!shown()) return;
  const at::NoGradGuard no_graph;
  model_->parameters().flat().copy_(hidden_);
  hidden_ = Tensor();
}

NamedTensors EvaluatedWeights::evaluated() const {
  return differ() && !shown() ? values_with(flat()) : named_values(model_->parameters());
}

NamedTensors EvaluatedWeights::trained() const {
  return shown() ? values_with(hidden_) : named_values(model_->parameters());
}

void EvaluatedWeights::load_trained(const NamedTensors& tensors, const std::string& origin) {
  hidden_ = Tensor();
  if (decay_ > 0) average_ = model_->parameters().flat().clone();
  load_parameters(model_->parameters(), tensors, origin);
}

Tensor EvaluatedWeights::flat() const {
  if (decay_ > 0 && average_.defined()) return average_;
  return optimizer_->averages_weights() ? optimizer_->evaluation_weights() : model_->parameters().flat();
}

NamedTensors EvaluatedWeights::values_with(const Tensor& flat) const {
  NamedTensors values = named_values(model_->parameters());  // buffers come last
  const std::vector<Tensor> pieces = model_->parameters().split(flat);
  for (size_t i = 0; i < pieces.size(); ++i) values[i].second = pieces[i];
  return values;
}

}  // namespace plumb
