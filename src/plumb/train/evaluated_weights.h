// The weights of a run that are evaluated and kept, if they differ from the trained weights: a moving average, or the
// average of an optimizer that keeps one.
#pragma once

#include <string>

#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// With `decay` d > 0, the evaluated weights are the exponential moving average of the weights w after each step,
///   a_t = (1 − d)·Σ_{s ≤ t} d^(t−s)·w_s / (1 − d^t),
/// with bias correction as in Adam. If the model constrains its weights (Model::constrain), each average is constrained
/// as well. With d = 0, they are the optimizer's (Optimizer::evaluation_weights) or simply the parameters. Buffers are
/// not averaged.
class EvaluatedWeights {
 public:
  /// Model and optimizer must outlive it. Throws Error if the optimizer averages the weights although decay > 0 or the
  /// model constrains its weights.
  EvaluatedWeights(Model& model, const Optimizer& optimizer, double decay);

  /// Adds the weights after step t to the average, which begins at t = 1. Every step counts, including those without an
  /// update. The model must hold its trained weights.
  void add(int64_t t);

  /// Whether the evaluated weights differ from the trained ones.
  [[nodiscard]] bool differ() const { return decay_ > 0 || optimizer_->averages_weights(); }

  /// Puts the evaluated weights into the model, or the trained ones back. Both are idempotent.
  void show();
  void hide();
  [[nodiscard]] bool shown() const { return hidden_.defined(); }

  /// All values of the model, parameters and buffers, for a checkpoint: as evaluated and as trained.
  [[nodiscard]] NamedTensors evaluated() const;
  [[nodiscard]] NamedTensors trained() const;

  /// Call after loading evaluated weights into the model: takes the trained weights that belong to them. Throws Error
  /// naming `origin` if they are those of another model.
  void load_trained(const NamedTensors& tensors, const std::string& origin);

 private:
  [[nodiscard]] Tensor flat() const;  // the evaluated weights
  [[nodiscard]] NamedTensors values_with(const Tensor& flat) const;

  Model* model_;
  const Optimizer* optimizer_;
  double decay_;
  bool constrained_;
  Tensor average_;  // undefined before the first step
  Tensor hidden_;   // the trained weights while the evaluated ones are shown; undefined otherwise
};

/// Shows the evaluated weights within a scope.
class ShownWeights {
 public:
  explicit ShownWeights(EvaluatedWeights& weights) : weights_(weights), before_(weights.shown()) { weights_.show(); }
  ~ShownWeights() {
    if (!before_) weights_.hide();
  }
  ShownWeights(const ShownWeights&) = delete;
  ShownWeights& operator=(const ShownWeights&) = delete;

 private:
  EvaluatedWeights& weights_;
  bool before_;
};

}  // namespace plumb
