#include "plumb/optim/bfloat16_parameters.h"

#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/ops/stochastic_rounding.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {
namespace {

/// The common part of the two kinds: everything but the step is delegated to the wrapped optimizer.
class Rounded : public Optimizer {
 public:
  Rounded(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters)
      : Optimizer(parameters), optimizer_(std::move(optimizer)), parameters_(parameters) {}

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors = optimizer_->state();
    tensors.emplace_back("rounded", at::full({}, steps_, at::kLong));
    return tensors;
  }
  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    optimizer_->load_state(tensors, origin);
    const Tensor steps = at::zeros({}, at::kLong);
    load_tensor(tensors, "rounded", steps, origin);
    steps_ = steps.item<int64_t>();
  }
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override {
    return optimizer_->preconditioning();
  }
  [[nodiscard]] bool decay_is_in_direction() const override { return optimizer_->decay_is_in_direction(); }
  [[nodiscard]] Beginning beginning() const override { return optimizer_->beginning(); }
  void see_validation(double nll) override { optimizer_->see_validation(nll); }

 protected:
  /// The wrapped optimizer's step.
  void move(const OptimizerStep& step) {
    optimizer_->step(step.gradients, step.parameters, step.gradient_scale);
    ++steps_;
  }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  /// The number of steps taken.
  [[nodiscard]] int64_t steps() const { return steps_; }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  Parameters parameters_;
  int64_t steps_ = 0;
};

class StochasticallyRounded final : public Rounded {
 public:
  StochasticallyRounded(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters, uint64_t seed)
      : Rounded(std::move(optimizer), parameters), seed_(seed) {}

 private:
  /// One stream per parameter and step. The parameter's name, not its index, selects the stream, so that an optimizer
  /// of a shard of the parameters draws the same numbers.
  [[nodiscard]] ops::RoundingKey key_of(const Parameter& parameter) const {
    const auto words = philox(seed_, stream_of("bfloat16 " + parameter.name), static_cast<uint64_t>(steps()));
    return {seed_, uint64_t{words[1]} << 32U | words[0]};
  }

  void update(const OptimizerStep& step) override {
    move(step);
    for (size_t i = 0; i < step.parameters.size(); ++i) {
      const Parameter& parameter = parameters().all()[i];
      if (!step.parameters[i].frozen) ops::round_stochastically(parameter.value.detach(), key_of(parameter));
    }
  }

  uint64_t seed_;
};

class WithCopy final : public Rounded {
 public:
  WithCopy(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters)
      : Rounded(std::move(optimizer), parameters), set_(parameters), copy_(set_.zeros()) {}

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors = Rounded::state();
    set_.append(tensors, "float32", copy_);
    return tensors;
  }
  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    Rounded::load_state(tensors, origin);
    set_.load(tensors, "float32", copy_, origin);
  }

 private:
  void update(const OptimizerStep& step) override {
    const Tensor& values = parameters().flat();
    if (steps() > 0) values.copy_(copy_);
    move(step);
    copy_.copy_(values);
    ops::round_to_nearest(values);
  }

  ParameterSet set_;
  Tensor copy_;  // not meaningful before the first step
};

}  // namespace

std::unique_ptr<Optimizer> with_bfloat16_parameters(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters,
                                                    Bfloat16Parameters kind, uint64_t seed) {
  if (parameters.type() != at::kFloat)
    throw Error("train.parameters rounds float32 to bfloat16, and the model is not in float32");
  if (optimizer->averages_weights()) {
    throw Error("train.parameters cannot be combined with an optimizer that averages the weights",
                "set it to float32, or choose another train.optimizer");
  }
  if (kind == Bfloat16Parameters::stochastic)
    return std::make_unique<StochasticallyRounded>(std::move(optimizer), parameters, seed);
  return std::make_unique<WithCopy>(std::move(optimizer), parameters);
}

}  // namespace plumb
