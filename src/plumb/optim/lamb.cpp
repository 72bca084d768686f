// LAMB (You et al. 2020, arXiv 1904.00962): Adam with the step of each matrix or vector scaled to lr times its norm,
// for large batches.
//   m ← β₁m + (1 − β₁)g;  v ← β₂v + (1 − β₂)g²
//   u = (m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w
//   w ← w − lr·(‖w‖/‖u‖)·u;  the ratio is 1 if either norm is 0
// The matrices stacked in one parameter, such as query, key and value, have separate ratios.
#include "plumb/optim/adam.h"

namespace plumb {
namespace {

struct LambOptions {
  AdamOptions adam{.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6};
  bool adapt_vectors = true;
};
void describe(Fields& field, LambOptions& options) {
  describe(field, options.adam);
  field("adapt_vectors", options.adapt_vectors,
        "whether the ratio applies to biases, gains and other parameters that are not matrices; not in the authors' "
        "BERT");
}

/// ‖w‖/‖u‖, as a tensor; 1 if either is 0.
Tensor trust_ratio(const Tensor& w, const Tensor& u) {
  const Tensor length = w.norm(), step = u.norm();
  return at::where(at::logical_and(length > 0, step > 0), length / step, at::ones_like(length));
}

class Lamb final : public Optimizer {
 public:
  Lamb(const Parameters& parameters, const LambOptions& options)
      : Optimizer(parameters), adapt_vectors_(options.adapt_vectors), set_(parameters), moments_(set_, options.adam) {}

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors;
    moments_.append_state(tensors);
    return tensors;
  }
  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    moments_.load_state(tensors, origin);
  }

  [[nodiscard]] bool decay_is_in_direction() const override { return true; }

 private:
  void update(const OptimizerStep& step) override {
    const Tensor directions = moments_.directions(step);
    for (const size_t k : set_.moving(step)) {
      const ParameterSet::Member& member = set_.members()[k];
      const ParameterStep& settings = step.parameters[member.index];
      const std::vector<Tensor> weights = matrices_of(member.parameter, member.parameter.value.detach());
      const std::vector<Tensor> updates = matrices_of(member.parameter, ParameterSet::piece(member, directions));
      for (size_t i = 0; i < weights.size(); ++i) {
        updates[i].add_(weights[i], settings.weight_decay);
        if (adapt_vectors_ || weights[i].dim() >= 2) updates[i].mul_(trust_ratio(weights[i], updates[i]));
        weights[i].sub_(updates[i], settings.learning_rate);
      }
    }
  }

  bool adapt_vectors_;
  ParameterSet set_;
  AdamMoments moments_;
};

const bool kLambRegistered = optimizers().add(
    "lamb",
    "m and v as in `adam`; u = (m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w; w ← w − lr·(‖w‖/‖u‖)·u for each "
    "matrix or vector",
    "You et al. 2020, arXiv 1904.00962",
    [](const Parameters& parameters, const Options& options) {
      return std::make_unique<Lamb>(parameters, options.as<LambOptions>());
    },
    Options(LambOptions{}));

}  // namespace
}  // namespace plumb
