// Adam's update of a set of parameters, for optimizers that use it for all or some of them. See adam.cpp for the
// equation.
#pragma once

#include <functional>
#include <memory>
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

  /// For each member, what the last step divided m by: (1 − β₁ᵗ)·(√(v/(1 − β₂ᵗ)) + eps), unless an AdamRule changes it;
  /// ∞ for members that have taken no step.
  [[nodiscard]] std::vector<Tensor> divisors() const;
  /// Their smallest values, those of elements with v = 0: eps in the same units; 0 where a step does not divide by √v.
  [[nodiscard]] std::vector<double> smallest_divisors() const;
  /// Whether any member has taken a step.
  [[nodiscard]] bool started() const;
  [[nodiscard]] const AdamOptions& options() const { return options_; }

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
