// A task for tests of numerical trouble: wraps another task and disturbs its loss.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "plumb/task/task.h"

namespace plumb::test {

/// Replaces the training loss by disturb(loss, step, model).
class DisturbedTask final : public Task {
 public:
  using Disturb = std::function<Tensor(const Tensor& loss, int64_t step, Model& model)>;
  DisturbedTask(const Task& inner, Disturb disturb) : Task(inner.data()), inner_(inner), disturb_(std::move(disturb)) {}
  [[nodiscard]] std::string name() const override { return "disturbed"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return inner_.dataset(split);
  }
  [[nodiscard]] std::string model_kind() const override { return inner_.model_kind(); }
  void complete(ModelConfig& config) const override { inner_.complete(config); }
  [[nodiscard]] Loss loss(Model& model, const Batch& batch, const LossOptions& options,
                          ForwardContext& context) const override {
    Loss loss = inner_.loss(model, batch, options, context);
    if (context.pass() == Pass::training) loss.value = disturb_(loss.value, context.step(), model);
    return loss;
  }

 private:
  const Task& inner_;
  Disturb disturb_;
};

/// A task whose loss is NaN in these steps.
inline DisturbedTask nan_in_steps(const Task& inner, std::set<int64_t> steps) {
  return {inner, [steps = std::move(steps)](const Tensor& loss, int64_t step, Model&) {
            return steps.contains(step) ? loss * NAN : loss;
          }};
}

}  // namespace plumb::test
