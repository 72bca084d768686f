// Stochastic gradient descent with momentum (Polyak 1964), weight decay as an L2 penalty:
//   g ← g + weight_decay·w;  b ← momentum·b + g;  w ← w − lr·b
// and with Nesterov's momentum (Sutskever et al. 2013), written for the gradient at w:
//   w ← w − lr·(g + momentum·b)
#include "plumb/ops/update.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {
namespace {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
};
void describe(Fields& field, SgdOptions& options) {
  field("momentum", options.momentum, "fraction of b that is kept; 0: no momentum", below_one());
  field("nesterov", options.nesterov, "whether to use Nesterov momentum");
}

class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const SgdOptions& options)
      : Optimizer(parameters), options_(options), set_(parameters), momentum_(set_.zeros()) {
    set_.append(declared_state(), "momentum", momentum_);
  }

  [[nodiscard]] bool acts_by_element() const override { return true; }

  /// stable_product is 2 + 2μ for momentum μ; (2 + 2μ)/(1 + 2μ) with Nesterov's.
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override {
    const double mu = options_.momentum;
    return Preconditioning{{}, {}, (2 + 2 * mu) / (options_.nesterov ? 1 + 2 * mu : 1)};
  }

  /// With a constant gradient g, b tends to g/(1 − μ), and so does g + μ·b.
  [[nodiscard]] Beginning beginning() const override { return {.momentum_gain = 1 / (1 - options_.momentum)}; }

  [[nodiscard]] bool decay_is_in_direction() const override { return true; }

 private:
  void update(const OptimizerStep& step) override {
    const std::vector<size_t> moving = set_.moving(step);
    std::vector<ops::SgdUpdate> updates;
    for (const size_t k : moving) {
      const ParameterStep& settings = step.parameters[set_.members()[k].index];
      updates.push_back({.rate = settings.learning_rate,
                         .momentum = options_.momentum,
                         .decay = settings.weight_decay,
                         .gradient_scale = step.gradient_scale,
                         .nesterov = options_.nesterov});
    }
    ops::update(updates, set_.gradients(step, moving), {set_.pieces(momentum_, moving), set_.values(moving)});
  }

  SgdOptions options_;
  ParameterSet set_;
  Tensor momentum_;  // b
};

const bool kSgdRegistered = add_optimizer<Sgd, SgdOptions>(
    "sgd", "g ← g + weight_decay·w; b ← momentum·b + g; w ← w − lr·b, or w ← w − lr·(g + momentum·b) with `nesterov`",
    "Polyak 1964; Sutskever et al. 2013");

}  // namespace
}  // namespace plumb
