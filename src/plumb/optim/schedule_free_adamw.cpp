// Schedule-Free AdamW (Defazio et al. 2024, arXiv 2405.15682): no decay of the learning rate, so the length of training
// need not be known. Gradients are taken at y, between z, which Adam updates, and x, the mean of z, which is evaluated:
//   y = (1 − β₁)z + β₁x;  v ← β₂v + (1 − β₂)g²
//   z ← z − lr·[g/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·y]
//   x ← (1 − c)x + c·z,  c = l²/Σl² over the steps so far, with l the largest lr so far
// Use a learning rate that is constant after a warm-up. As in the authors' code, v's bias is corrected only in the
// step, and c uses the largest lr; in the paper, √(1 − β₂ᵗ) multiplies lr everywhere.
#include <algorithm>
#include <cmath>

#include "plumb/ops/update.h"
#include "plumb/optim/parameter_set.h"
#include "plumb/optim/step_counts.h"

namespace plumb {
namespace {

struct ScheduleFreeOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};
void describe(Fields& field, ScheduleFreeOptions& options) {
  field("beta1", options.beta1, "β₁, how close to x gradients are taken", below_one());
  field("beta2", options.beta2, "β₂, decay rate of the running mean of squared gradients", below_one());
  field("eps", options.eps, "added to the square root of that mean", epsilon());
}

class ScheduleFreeAdamW final : public Optimizer {
 public:
  /// The state is `step`, `largest_rate` and `weight_sum`, with an element for each parameter; `z.NAME`, `x.NAME` and
  /// `v.NAME`, which are 0 before a parameter's first step.
  ScheduleFreeAdamW(const Parameters& parameters, const ScheduleFreeOptions& options)
      : Optimizer(parameters),
        options_(options),
        set_(parameters),
        z_(set_.zeros()),
        x_(set_.zeros()),
        v_(set_.zeros()),
        steps_(set_.members().size()),
        largest_(at::zeros_like(steps_.numbers(), at::kDouble)),
        sum_(at::zeros_like(largest_)) {
    set_.append_numbers(declared_state(), "step", steps_.numbers());
    set_.append_numbers(declared_state(), "largest_rate", largest_);
    set_.append_numbers(declared_state(), "weight_sum", sum_);
    set_.append(declared_state(), "z", z_);
    set_.append(declared_state(), "x", x_);
    set_.append(declared_state(), "v", v_);
  }

  [[nodiscard]] bool acts_by_element() const override { return true; }
  [[nodiscard]] bool averages_weights() const override { return true; }
  /// x, but y for parameters that have taken no step.
  [[nodiscard]] Tensor evaluation_weights() const override {
    Tensor weights = x_.clone();
    for (size_t k = 0; k < set_.members().size(); ++k) {
      const ParameterSet::Member& member = set_.members()[k];
      if (steps_[k] == 0) weights.narrow(0, member.begin, member.flat.numel()).copy_(member.flat);
    }
    return weights;
  }

 private:
  void update(const OptimizerStep& step) override {
    const std::vector<size_t> moving = set_.moving(step);
    double *const largest = largest_.data_ptr<double>(), *const sum = sum_.data_ptr<double>();
    std::vector<ops::ScheduleFreeUpdate> updates;
    for (const size_t k : moving) {
      const ParameterStep& settings = step.parameters[set_.members()[k].index];
      const int64_t t = steps_.next(k);
      largest[k] = std::max(largest[k], settings.learning_rate);
      sum[k] += largest[k] * largest[k];
      updates.push_back({.beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .eps = options_.eps,
                         .rate = settings.learning_rate,
                         .root_scale = 1 / std::sqrt(1 - std::pow(options_.beta2, static_cast<double>(t))),
                         .decay = settings.weight_decay,
                         .share = sum[k] > 0 ? largest[k] * largest[k] / sum[k] : 1,
                         .gradient_scale = step.gradient_scale});
      if (t > 1) continue;
      for (const Tensor& start : {z_, x_})
        ParameterSet::piece(set_.members()[k], start).copy_(set_.members()[k].parameter.value);
    }
    ops::update(updates, set_.gradients(step, moving),
                {set_.pieces(z_, moving), set_.pieces(x_, moving), set_.pieces(v_, moving), set_.values(moving)});
  }

  ScheduleFreeOptions options_;
  ParameterSet set_;
  Tensor z_, x_, v_;
  StepCounts steps_;
  Tensor largest_, sum_;  // l and Σl² of each parameter
};

const bool kScheduleFreeAdamwRegistered = add_optimizer<ScheduleFreeAdamW, ScheduleFreeOptions>(
    "schedule-free-adamw",
    "gradients at y = (1 − β₁)z + β₁x; v ← β₂v + (1 − β₂)g²; z ← z − lr·[g/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·y]; "
    "x ← (1 − c)x + c·z, c = lr²/Σlr², which is evaluated and saved; with `constant * linear_warmup`",
    "Defazio et al. 2024, arXiv 2405.15682");

}  // namespace
}  // namespace plumb
