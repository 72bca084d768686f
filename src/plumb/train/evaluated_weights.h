// The weights of a run that are evaluated and kept, where they are not those that gradients are taken at: a running
// average of the weights, or those of an optimizer that averages.
#pragma once

#include <filesystem>
#include <optional>

#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// With `decay` d > 0, the evaluated weights are the exponential moving average of the weights w after each step,
///   a_t = (1 − d)·Σ_{s ≤ t} d^(t−s)·w_s / (1 − d^t),
/// whose divisor, as in Adam, leaves no trace of the time before the first step. Where the model constrains its weights
/// (Model::constrain), so it does each average. With d = 0, they are the optimizer's (Optimizer::evaluation_weights),
/// or simply the parameters. Buffers are not averaged.
class EvaluatedWeights {
 public:
  /// Model and optimizer must outlive it. Throws Error if both would average, and if the optimizer averages weights
  /// that the model constrains.
  EvaluatedWeights(Model& model, const Optimizer& optimizer, double decay);

  /// Takes the weights after step t into the average, which begins at t = 1. Every step counts, also one that left the
  /// weights as they were. The model must have its trained weights.
  void add(int64_t t);

  /// Whether the evaluated weights are others than the trained ones.
  [[nodiscard]] bool differ() const { return decay_ > 0 || optimizer_.averages_weights(); }

  /// Puts the evaluated weights into the model, or the trained ones back; doing it again changes nothing.
  void show();
  void hide();
  [[nodiscard]] bool shown() const { return hidden_.defined(); }

  /// All values of the model, parameters and buffers, for a checkpoint: as evaluated and as trained.
  [[nodiscard]] NamedTensors evaluated() const;
  [[nodiscard]] NamedTensors trained() const;

  /// When the model has been given the evaluated weights of a checkpoint: reads its trained ones from this file. Reads
  /// nothing unless they differ. Throws Error if the file is missing or belongs to another model.
  void load_trained(const std::filesystem::path& file);

  /// The average, to be received from another process; (count()). Undefined if the optimizer has it, or nobody.
  [[nodiscard]] Tensor received();

 private:
  [[nodiscard]] Tensor flat() const;  // the evaluated weights
  [[nodiscard]] NamedTensors values_with(const Tensor& flat) const;

  Model& model_;
  const Optimizer& optimizer_;
  double decay_;
  bool constrained_;
  Tensor average_;  // undefined before the first step
  Tensor hidden_;   // the trained weights while the evaluated ones are shown; else undefined
};

/// Shows the evaluated weights in its scope.
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
