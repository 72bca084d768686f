// The base of optimizers that change how another one takes its steps.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "plumb/optim/optimizer.h"

namespace plumb {

/// Everything but the step is delegated to the wrapped optimizer, except for preconditioning(), which describes a step.
/// The state is that of the wrapped optimizer, followed by what this one declares.
class WrappedOptimizer : public Optimizer {
 public:
  /// `parameters`: of the model; `inner` may be of some of them.
  WrappedOptimizer(const Parameters& parameters, std::unique_ptr<Optimizer> inner)
      : Optimizer(parameters), inner_(std::move(inner)) {}

  [[nodiscard]] std::vector<StateTensor> state_tensors() const override {
    std::vector<StateTensor> state = inner_->state_tensors();
    for (StateTensor& own : Optimizer::state_tensors()) state.push_back(std::move(own));
    return state;
  }
  [[nodiscard]] Beginning beginning() const override { return inner_->beginning(); }
  [[nodiscard]] bool scales_by_weights() const override { return inner_->scales_by_weights(); }
  [[nodiscard]] bool averages_weights() const override { return inner_->averages_weights(); }
  [[nodiscard]] Tensor evaluation_weights() const override { return inner_->evaluation_weights(); }
  void see_validation(double nll) override { inner_->see_validation(nll); }
  [[nodiscard]] bool decay_is_in_direction() const override { return inner_->decay_is_in_direction(); }
  [[nodiscard]] bool acts_by_element() const override { return inner_->acts_by_element(); }

 protected:
  [[nodiscard]] Optimizer& inner() const { return *inner_; }
  void replace_inner(std::unique_ptr<Optimizer> inner) { inner_ = std::move(inner); }

 private:
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace plumb
