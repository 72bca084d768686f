// Adam's update of a set of parameters, for optimizers that use it for all or some of them. See adam.cpp for the
// equation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/ops/update.h"
#include "plumb/optim/parameter_set.h"
#include "plumb/optim/step_counts.h"

namespace plumb {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double eps = 1e-9;
};
void describe(Fields& field, AdamOptions& options);

/// Adjusts Adam's coefficients for step t of a parameter.
using AdamRule = std::function<void(ops::AdamUpdate& update, int64_t t)>;

/// Adam's two running means for each parameter of a set, and the update computed from them.
class AdamMoments {
 public:
  AdamMoments(ParameterSet set, const AdamOptions& options, AdamRule rule = {});

  /// One step of the members that are not frozen.
  void update(const OptimizerStep& step);

  /// The same without moving anything: counts the step, and returns what ops::update takes for these members.
  struct Next {
    std::vector<size_t> members;
    std::vector<ops::AdamUpdate> updates;
    std::vector<Tensor> gradients;
    ops::UpdatedPieces<3> pieces;
  };
  [[nodiscard]] Next next(const OptimizerStep& step);

  /// `m.NAME`, `v.NAME`, and `step`: the number of steps t that each parameter has taken, not counting those in which
  /// it was frozen.
  void append_state(std::vector<StateTensor>& state) const;

  /// Of the last step, for each member: m was divided by (1 − β₁ᵗ)·(√(v/(1 − β₂ᵗ)) + eps), unless an AdamRule changes
  /// it. For m ← β₁m + (1 − β₁)g, stable_product is (2 + 2β₁)/(1 − β₁): 38 for β₁ = 0.9. Empty before the first step.
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const;

 private:
  /// For step t of a parameter, without weight decay.
  [[nodiscard]] ops::AdamUpdate coefficients(int64_t t, double learning_rate) const;

  ParameterSet set_;
  AdamOptions options_;
  Tensor m_, v_;
  StepCounts steps_;
  AdamRule rule_;
};

/// Adam for all parameters.
std::unique_ptr<Optimizer> make_adam(const Parameters& parameters, const AdamOptions& options, AdamRule rule = {});

}  // namespace plumb
