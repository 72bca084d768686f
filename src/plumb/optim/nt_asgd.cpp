// Non-monotonically triggered averaged stochastic gradient descent: Merity et al. 2018, "Regularizing and optimizing
// LSTM language models", arXiv 1708.02182; averaging: Polyak & Juditsky 1992.
//   g ← g + weight_decay·w;  w ← w − lr·g
// and from step T on, after the validation that triggers averaging, the mean of the weights, which is evaluated:
//   a = (w_T + … + w_k)/(k − T + 1)
// Averaging begins after a validation with value v that, given the values v_1, …, v_t of all earlier ones, satisfies
//   t > n and v > min(v_1, …, v_{t−n})
// as in the authors' code (salesforce/awd-lstm-lm, main.py). The paper's algorithm 1 has the minimum of the values from
// v_{t−n} on instead.
#include <algorithm>
#include <limits>
#include <span>

#include "plumb/ops/update.h"
#include "plumb/optim/parameter_set.h"
#include "plumb/optim/step_counts.h"

namespace plumb {
namespace {

struct NtAsgdOptions {
  int64_t nonmonotone_interval = 5;
};
void describe(Fields& field, NtAsgdOptions& options) {
  field("nonmonotone_interval", options.nonmonotone_interval,
        "n: averaging begins once a validation is worse than the best one before the last n", within(1, 1'000'000));
}

constexpr double kNoValidation = std::numeric_limits<double>::infinity();

class NtAsgd final : public Optimizer {
 public:
  /// The state is `average.NAME`, and `step`, the number of weights in each parameter's average: 0 until averaging
  /// begins. `recent_i` are the values of the last n validations, oldest first, and `best_before` is the best value
  /// before them; infinite where there was no validation.
  NtAsgd(const Parameters& parameters, const NtAsgdOptions& options)
      : Optimizer(parameters),
        set_(parameters),
        average_(set_.zeros()),
        averaged_(set_.members().size()),
        best_before_(at::full({}, kNoValidation, at::kDouble)),
        recent_(at::full({options.nonmonotone_interval}, kNoValidation, at::kDouble)) {
    set_.append_numbers(declared_state(), "step", averaged_.numbers());
    declared_state().push_back({.kind = "best_before", .value = best_before_});
    for (int64_t i = 0; i < recent_.numel(); ++i)
      declared_state().push_back({.kind = fmt::format("recent_{}", i), .value = recent_.select(0, i)});
    set_.append(declared_state(), "average", average_);
  }

  /// As for plain gradient descent.
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override { return Preconditioning{{}, {}, 2}; }

  [[nodiscard]] bool decay_is_in_direction() const override { return true; }
  [[nodiscard]] bool acts_by_element() const override { return true; }
  [[nodiscard]] bool averages_weights() const override { return true; }
  [[nodiscard]] Tensor evaluation_weights() const override {
    Tensor weights = average_.clone();
    for (size_t k = 0; k < set_.members().size(); ++k) {
      const ParameterSet::Member& member = set_.members()[k];
      if (averaged_[k] == 0) weights.narrow(0, member.begin, member.flat.numel()).copy_(member.flat);
    }
    return weights;
  }

  void see_validation(double nll) override {
    auto& best_before = *best_before_.data_ptr<double>();
    const std::span recent(recent_.data_ptr<double>(), static_cast<size_t>(recent_.numel()));
    if (!averaged_.started() && nll > best_before) begin_averaging();
    best_before = std::min(best_before, recent.front());
    std::rotate(recent.begin(), recent.begin() + 1, recent.end());
    recent.back() = nll;
  }

 private:
  /// The average starts from the current weights.
  void begin_averaging() {
    const at::NoGradGuard no_graph;
    for (size_t k = 0; k < set_.members().size(); ++k) {
      const ParameterSet::Member& member = set_.members()[k];
      average_.narrow(0, member.begin, member.flat.numel()).copy_(member.flat);
      averaged_.next(k);
    }
  }

  void update(const OptimizerStep& step) override {
    const bool averages = averaged_.started();
    const std::vector<size_t> moving = set_.moving(step);
    std::vector<ops::AveragedUpdate> updates;
    for (const size_t k : moving) {
      const ParameterStep& settings = step.parameters[set_.members()[k].index];
      updates.push_back({.rate = settings.learning_rate,
                         .decay = settings.weight_decay,
                         .share = averages ? 1 / static_cast<double>(averaged_.next(k)) : 0,
                         .gradient_scale = step.gradient_scale});
    }
    ops::update(updates, set_.gradients(step, moving), {set_.pieces(average_, moving), set_.values(moving)});
  }

  ParameterSet set_;
  Tensor average_;       // a
  StepCounts averaged_;  // k − T + 1 of each parameter; not counted while frozen
  Tensor best_before_;   // a scalar
  Tensor recent_;        // (n)
};

const bool kNtAsgdRegistered = add_optimizer<NtAsgd, NtAsgdOptions>(
    "nt-asgd",
    "g ← g + weight_decay·w; w ← w − lr·g; once a validation is worse than the best one before the last n, the mean of "
    "the weights since then is evaluated and saved",
    "Merity et al. 2018, arXiv 1708.02182");

}  // namespace
}  // namespace plumb
