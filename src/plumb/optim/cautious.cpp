#include "plumb/optim/cautious.h"

#include <utility>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kSmallestShare = 1e-3;

class Cautious final : public Optimizer {
 public:
  Cautious(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters)
      : Optimizer(parameters), optimizer_(std::move(optimizer)), parameters_(parameters) {}

  [[nodiscard]] NamedTensors state() const override { return optimizer_->state(); }
  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    optimizer_->load_state(tensors, origin);
  }
  [[nodiscard]] bool decay_is_in_direction() const override { return optimizer_->decay_is_in_direction(); }
  [[nodiscard]] Beginning beginning() const override { return optimizer_->beginning(); }

 private:
  void update(const OptimizerStep& step) override {
    const std::vector<Tensor> before = parameters_.split(parameters_.flat().clone());
    std::vector<ParameterStep> settings(step.parameters.begin(), step.parameters.end());
    if (!decay_is_in_direction()) {
      for (ParameterStep& each : settings) each.weight_decay = 0;
    }
    optimizer_->step(step.gradients, settings, step.gradient_scale);
    for (size_t i = 0; i < before.size(); ++i) {
      if (settings[i].frozen) continue;
      const Tensor w = parameters_.all()[i].value.detach();
      const double decay = decay_is_in_direction() ? 0 : step.parameters[i].weight_decay;
      // The decay is added to the step before both are subtracted from w, so that float32 does not lose a small decay.
      const Tensor moved = at::sub(before[i], w);  // lr·u
      const Tensor kept = at::gt(moved * step.gradients[i], 0).to(moved.scalar_type());
      moved.mul_(kept).div_(kept.mean().clamp_min_(kSmallestShare));
      w.copy_(before[i] - moved.add_(before[i], step.parameters[i].learning_rate * decay));
    }
  }

  std::unique_ptr<Optimizer> optimizer_;
  Parameters parameters_;
};

}  // namespace

std::unique_ptr<Optimizer> make_cautious(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters) {
  if (optimizer->averages_weights()) {
    throw Error("train.cautious cannot be combined with an optimizer that averages the weights",
                "leave train.cautious out, or choose another train.optimizer");
  }
  return std::make_unique<Cautious>(std::move(optimizer), parameters);
}

}  // namespace plumb
