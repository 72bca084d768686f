// Adam (Kingma & Ba 2015, arXiv 1412.6980) with decoupled weight decay (Loshchilov & Hutter 2019, arXiv 1711.05101) and
// the constants of Vaswani et al. 2017, arXiv 1706.03762:
//   m ← β₁m + (1 − β₁)g;  v ← β₂v + (1 − β₂)g²
//   w ← w − lr·[(m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w]
#include "plumb/optim/adam.h"

#include <cmath>
#include <limits>
#include <utility>

namespace plumb {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const Parameters& parameters, const AdamOptions& options, AdamRule rule)
      : Optimizer(parameters), moments_(ParameterSet(parameters), options, std::move(rule)) {
    moments_.append_state(declared_state());
  }

  [[nodiscard]] bool acts_by_element() const override { return true; }

  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override { return moments_.preconditioning(); }

 private:
  void update(const OptimizerStep& step) override { moments_.update(step); }

  AdamMoments moments_;
};

const bool kAdamRegistered = optimizers().add(
    "adam",
    "m ← β₁m + (1 − β₁)g; v ← β₂v + (1 − β₂)g²; w ← w − lr·[(m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w]",
    "Kingma & Ba 2015, arXiv 1412.6980; weight decay: Loshchilov & Hutter 2019, arXiv 1711.05101",
    [](const Parameters& parameters, const Options& options) {
      return make_adam(parameters, options.as<AdamOptions>());
    },
    Options(AdamOptions{}));

}  // namespace

void describe(Fields& field, AdamOptions& options) {
  field("beta1", options.beta1, "β₁, decay rate of the running mean of gradients", below_one());
  field("beta2", options.beta2, "β₂, decay rate of the running mean of squared gradients", below_one());
  field("eps", options.eps, "added to the square root of that mean", epsilon());
}

AdamMoments::AdamMoments(ParameterSet set, const AdamOptions& options, AdamRule rule)
    : set_(std::move(set)),
      options_(options),
      m_(set_.zeros()),
      v_(set_.zeros()),
      steps_(set_.members().size()),
      rule_(std::move(rule)) {}

void AdamMoments::update(const OptimizerStep& step) {
  const Next own = next(step);
  ops::update(own.updates, own.gradients, own.pieces);
}

AdamMoments::Next AdamMoments::next(const OptimizerStep& step) {
  const std::vector<size_t> moving = set_.moving(step);
  std::vector<ops::AdamUpdate> updates;
  for (const size_t k : moving) {
    const ParameterStep& settings = step.parameters[set_.members()[k].index];
    ops::AdamUpdate update = coefficients(steps_.next(k), settings.learning_rate);
    update.decay = settings.learning_rate * settings.weight_decay;
    update.gradient_scale = step.gradient_scale;
    updates.push_back(update);
  }
  return {moving,
          updates,
          set_.gradients(step, moving),
          {set_.pieces(m_, moving), set_.pieces(v_, moving), set_.values(moving)}};
}

ops::AdamUpdate AdamMoments::coefficients(int64_t t, double learning_rate) const {
  const auto steps = static_cast<double>(t);
  ops::AdamUpdate update{.beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .eps = options_.eps,
                         .step = learning_rate / (1 - std::pow(options_.beta1, steps)),
                         .root_scale = 1 / std::sqrt(1 - std::pow(options_.beta2, steps))};
  if (rule_) rule_(update, t);
  return update;
}

std::optional<Preconditioning> AdamMoments::preconditioning() const {
  if (!steps_.started()) return std::nullopt;
  Preconditioning result;
  result.stable_product = (2 + 2 * options_.beta1) / (1 - options_.beta1);
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Tensor v = ParameterSet::piece(set_.members()[k], v_);
    if (steps_[k] == 0) {
      result.diagonal.push_back(at::full_like(v, std::numeric_limits<double>::infinity()));
      result.floor.push_back(0);
      continue;
    }
    const ops::AdamUpdate last = coefficients(steps_[k], 1);
    result.diagonal.push_back(v.sqrt().mul_(last.root_scale).add_(last.eps).div_(last.step));
    result.floor.push_back(last.root_scale > 0 ? last.eps / last.step : 0);
  }
  return result;
}

void AdamMoments::append_state(std::vector<StateTensor>& state) const {
  set_.append_numbers(state, "step", steps_.numbers());
  set_.append(state, "m", m_);
  set_.append(state, "v", v_);
}

std::unique_ptr<Optimizer> make_adam(const Parameters& parameters, const AdamOptions& options, AdamRule rule) {
  return std::make_unique<Adam>(parameters, options, std::move(rule));
}

}  // namespace plumb
