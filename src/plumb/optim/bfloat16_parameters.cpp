#include "plumb/optim/bfloat16_parameters.h"

#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/ops/stochastic_rounding.h"
#include "plumb/optim/parameter_set.h"
#include "plumb/optim/wrapped_optimizer.h"

namespace plumb {
namespace {

/// The common part of the two kinds.
class Rounded : public WrappedOptimizer {
 public:
  Rounded(const Parameters& parameters, std::unique_ptr<Optimizer> optimizer)
      : WrappedOptimizer(parameters, std::move(optimizer)) {
    declared_state().push_back({.kind = "rounded", .value = steps_});
  }

  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override { return inner().preconditioning(); }
  /// Random numbers depend on the element's index in the parameter.
  [[nodiscard]] bool acts_by_element() const override { return false; }

 protected:
  /// The wrapped optimizer's step.
  void move(const OptimizerStep& step) {
    inner().step(step.gradients, step.parameters, step.gradient_scale);
    steps_.add_(1);
  }
  /// The number of steps taken.
  [[nodiscard]] int64_t steps() const { return steps_.item<int64_t>(); }

 private:
  Tensor steps_ = at::zeros({}, at::kLong);
};

class StochasticallyRounded final : public Rounded {
 public:
  StochasticallyRounded(const Parameters& parameters, std::unique_ptr<Optimizer> optimizer, uint64_t seed)
      : Rounded(parameters, std::move(optimizer)), seed_(seed) {}

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
  WithCopy(const Parameters& parameters, std::unique_ptr<Optimizer> optimizer)
      : Rounded(parameters, std::move(optimizer)), set_(parameters), copy_(set_.zeros()) {
    set_.append(declared_state(), "float32", copy_);
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
    return std::make_unique<StochasticallyRounded>(parameters, std::move(optimizer), seed);
  return std::make_unique<WithCopy>(parameters, std::move(optimizer));
}

}  // namespace plumb
