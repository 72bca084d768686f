#include "plumb/optim/cautious.h"

#include <utility>

#include "plumb/base/error.h"
#include "plumb/optim/wrapped_optimizer.h"

namespace plumb {
namespace {

constexpr double kSmallestShare = 1e-3;

class Cautious final : public WrappedOptimizer {
 public:
  using WrappedOptimizer::WrappedOptimizer;

  /// The mean of φ is that of a parameter.
  [[nodiscard]] bool acts_by_element() const override { return false; }

 private:
  void update(const OptimizerStep& step) override {
    const std::vector<Tensor> before = parameters().split(parameters().flat().clone());
    std::vector<ParameterStep> settings(step.parameters.begin(), step.parameters.end());
    if (!decay_is_in_direction()) {
      for (ParameterStep& each : settings) each.weight_decay = 0;
    }
    inner().step(step.gradients, settings, step.gradient_scale);
    for (size_t i = 0; i < before.size(); ++i) {
      if (settings[i].frozen) continue;
      const Tensor w = parameters().all()[i].value.detach();
      const double decay = decay_is_in_direction() ? 0 : step.parameters[i].weight_decay;
      // The decay is added to the step before both are subtracted from w, so that float32 does not lose a small decay.
      const Tensor moved = at::sub(before[i], w);  // lr·u
      const Tensor mask = at::gt(moved * step.gradients[i], 0).to(moved.scalar_type());
      moved.mul_(mask).div_(mask.mean().clamp_min_(kSmallestShare));
      w.copy_(before[i] - moved.add_(before[i], step.parameters[i].learning_rate * decay));
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_cautious(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters) {
  if (optimizer->averages_weights()) {
    throw Error("train.cautious cannot be combined with an optimizer that averages the weights",
                "leave train.cautious out, or choose another train.optimizer");
  }
  return std::make_unique<Cautious>(parameters, std::move(optimizer));
}

}  // namespace plumb
