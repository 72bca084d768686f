// Adafactor (Shazeer & Stern 2018, arXiv 1804.04235), with decoupled weight decay: Adam without momentum by default,
// with the mean of squared gradients of a matrix factored into row and column means, an update of limited root mean
// square, and a learning rate relative to the size of the weights. For a matrix, with means over its rows and columns
// in place of the paper's sums:
//   β₂ₜ = 1 − t^−decay
//   r ← β₂ₜr + (1 − β₂ₜ)·mean over columns of (g² + eps);  c ← β₂ₜc + (1 − β₂ₜ)·mean over rows of (g² + eps)
//   v = r·cᵀ/mean(r)
// for anything else
//   v ← β₂ₜv + (1 − β₂ₜ)(g² + eps)
// and then, with RMS(x) = √mean(x²),
//   u = g/√v;  u ← u/max(1, RMS(u)/clip);  m ← β₁m + (1 − β₁)u
//   w ← w − lr·[max(smallest_scale, RMS(w))·m + weight_decay·w]
// The matrices stacked in one parameter, such as query, key and value, are separate: each has its own means, RMS(u) and
// RMS(w). The paper's relative step size min(10⁻², 1/√t) is left to the schedule.
#include <cmath>

#include "plumb/optim/parameter_set.h"
#include "plumb/optim/step_counts.h"

namespace plumb {
namespace {

struct AdafactorOptions {
  double beta1 = 0;
  double decay = 0.8;
  double eps = 1e-30;
  double clip = 1;
  bool relative = true;
  double smallest_scale = 1e-3;
};
void describe(Fields& field, AdafactorOptions& options) {
  field("beta1", options.beta1, "β₁, decay rate of a running mean of updates; 0: none is kept", below_one());
  field("decay", options.decay, "β₂ₜ = 1 − t^−decay, decay rate of the running means of squared gradients",
        at_least(0));
  field("eps", options.eps, "added to squared gradients", epsilon());
  field("clip", options.clip, "largest root mean square of a parameter's update", above(0));
  field("relative", options.relative, "multiplies lr by the root mean square of the weights");
  field("smallest_scale", options.smallest_scale, "smallest factor with `relative`", within(0, 1e30));
}

/// √mean(x²) over all elements, as a tensor with one element.
Tensor root_mean_square(const Tensor& x) { return x.square().mean().sqrt_(); }

class Adafactor final : public Optimizer {
 public:
  /// The state is `step`; `row.NAME` and `column.NAME` of matrices (of stacked ones, `row.0.NAME` and so on), `v.NAME`
  /// of the rest; with β₁ > 0, `m.NAME`.
  Adafactor(const Parameters& parameters, const AdafactorOptions& options)
      : Optimizer(parameters), options_(options), set_(parameters), steps_(set_.members().size()) {
    if (options.beta1 > 0) mean_ = set_.zeros();
    for (const ParameterSet::Member& member : set_.members()) {
      const Tensor& value = member.parameter.value;
      std::vector<Squares> matrices;
      for (const Tensor& matrix : matrices_of(member.parameter, value.detach())) {
        matrices.push_back(zeros_like(matrix));
      }
      squares_.push_back(std::move(matrices));
    }
    set_.append_numbers(declared_state(), "step", steps_.numbers());
    for (size_t k = 0; k < squares_.size(); ++k) {
      const ParameterSet::Member& member = set_.members()[k];
      for (size_t i = 0; i < squares_[k].size(); ++i) {
        const auto add = [&](const std::string& kind, const Tensor& means) {
          if (!means.defined()) return;
          declared_state().push_back(
              {.kind = kind_of(kind, member.parameter, i), .parameter = member.index, .value = means});
        };
        add("v", squares_[k][i].all);
        add("row", squares_[k][i].rows);
        add("column", squares_[k][i].columns);
      }
    }
    if (mean_.defined()) set_.append(declared_state(), "m", mean_);
  }

  [[nodiscard]] bool scales_by_weights() const override { return options_.relative; }

 private:
  /// Running means of squared gradients.
  struct Squares {
    Tensor rows{}, columns{};  // r and c of a matrix; with more dimensions, of the last two
    Tensor all{};              // v of all other parameters
  };

  /// The means of a matrix or vector before the first step.
  static Squares zeros_like(const Tensor& value) {
    if (value.dim() < 2) return {.all = at::zeros_like(value)};
    std::vector<int64_t> columns = value.sizes().vec();
    columns.erase(columns.end() - 2);
    return {.rows = at::zeros(value.sizes().slice(0, value.dim() - 1), value.options()),
            .columns = at::zeros(columns, value.options())};
  }

  void update(const OptimizerStep& step) override {
    for (const size_t k : set_.moving(step)) {
      const ParameterSet::Member& member = set_.members()[k];
      update_member(k, member, step.gradients[member.index] * step.gradient_scale, step.parameters[member.index]);
    }
  }

  void update_member(size_t k, const ParameterSet::Member& member, const Tensor& gradient,
                     const ParameterStep& settings) {
    const double share = std::pow(static_cast<double>(steps_.next(k)), -options_.decay);  // 1 − β₂ₜ
    const std::vector<Tensor> gradients = matrices_of(member.parameter, gradient);
    const std::vector<Tensor> weights = matrices_of(member.parameter, member.parameter.value.detach());
    std::vector<Tensor> means(weights.size());
    if (mean_.defined()) means = matrices_of(member.parameter, ParameterSet::piece(member, mean_));
    for (size_t i = 0; i < weights.size(); ++i) {
      Tensor u = gradients[i] * inverse_root(squares_[k][i], gradients[i].square().add_(options_.eps), share);
      u.div_((root_mean_square(u) / options_.clip).clamp_min_(1));
      if (mean_.defined()) u = means[i].lerp_(u, 1 - options_.beta1).clone();
      if (options_.relative) u.mul_(root_mean_square(weights[i]).clamp_min_(options_.smallest_scale));
      weights[i].sub_(u.add_(weights[i], settings.weight_decay), settings.learning_rate);
    }
  }

  /// Updates the running means, and returns 1/√v.
  static Tensor inverse_root(const Squares& running, const Tensor& squares, double share) {
    if (running.all.defined()) return running.all.lerp_(squares, share).rsqrt();
    running.rows.lerp_(squares.mean(-1), share);
    running.columns.lerp_(squares.mean(-2), share);
    const Tensor rows = running.rows / running.rows.mean(-1, true);
    return rows.rsqrt_().unsqueeze(-1) * running.columns.rsqrt().unsqueeze(-2);
  }

  AdafactorOptions options_;
  ParameterSet set_;
  StepCounts steps_;
  std::vector<std::vector<Squares>> squares_;  // [member][matrix]
  Tensor mean_;                                // m; undefined if β₁ = 0
};

const bool kAdafactorRegistered = add_optimizer<Adafactor, AdafactorOptions>(
    "adafactor",
    "r, c ← β₂ₜ·(r, c) + (1 − β₂ₜ)·means of g² over columns and rows, β₂ₜ = 1 − t^−0.8; v = r·cᵀ/mean(r); u = g/√v; "
    "w ← w − lr·[RMS(w)·u/max(1, RMS(u)) + weight_decay·w] for each matrix or vector; the paper's lr is "
    "min(0.01, 1/√t)",
    "Shazeer & Stern 2018, arXiv 1804.04235");

}  // namespace
}  // namespace plumb
