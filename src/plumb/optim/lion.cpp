// Lion (Chen et al. 2023, arXiv 2302.06675), with decoupled weight decay: every element moves by lr, regardless of its
// gradient's magnitude. Learning rates are three to ten times smaller than Adam's, and weight decays correspondingly
// larger.
//   u = sign(β₁m + (1 − β₁)g);  m ← β₂m + (1 − β₂)g
//   w ← w − lr·(u + weight_decay·w)
#include "plumb/ops/update.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {
namespace {

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
};
void describe(Fields& field, LionOptions& options) {
  field("beta1", options.beta1, "β₁, weight of the running mean in the update direction", below_one());
  field("beta2", options.beta2, "β₂, decay rate of the running mean of gradients", below_one());
}

class Lion final : public Optimizer {
 public:
  Lion(const Parameters& parameters, const LionOptions& options)
      : Optimizer(parameters), options_(options), set_(parameters), mean_(set_.zeros()) {
    set_.append(declared_state(), "m", mean_);
  }

  [[nodiscard]] bool acts_by_element() const override { return true; }

 private:
  void update(const OptimizerStep& step) override {
    const std::vector<size_t> moving = set_.moving(step);
    std::vector<ops::LionUpdate> updates;
    for (const size_t k : moving) {
      const ParameterStep& settings = step.parameters[set_.members()[k].index];
      updates.push_back({.beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .rate = settings.learning_rate,
                         .decay = settings.weight_decay,
                         .gradient_scale = step.gradient_scale});
    }
    ops::update(updates, set_.gradients(step, moving), {set_.pieces(mean_, moving), set_.values(moving)});
  }

  LionOptions options_;
  ParameterSet set_;
  Tensor mean_;  // m
};

const bool kLionRegistered = add_optimizer<Lion, LionOptions>(
    "lion", "u = sign(β₁m + (1 − β₁)g); m ← β₂m + (1 − β₂)g; w ← w − lr·(u + weight_decay·w)",
    "Chen et al. 2023, arXiv 2302.06675");

}  // namespace
}  // namespace plumb
