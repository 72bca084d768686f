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

class Lamb final : public Optimizer {
 public:
  Lamb(const Parameters& parameters, const LambOptions& options)
      : Optimizer(parameters), adapt_vectors_(options.adapt_vectors), set_(parameters), moments_(set_, options.adam) {
    moments_.append_state(declared_state());
  }

  [[nodiscard]] bool decay_is_in_direction() const override { return true; }
  [[nodiscard]] bool scales_by_weights() const override { return true; }

 private:
  void update(const OptimizerStep& step) override {
    // Adam's coefficients at a learning rate of 1 are those of u
    std::vector<ParameterStep> unscaled(step.parameters.begin(), step.parameters.end());
    for (ParameterStep& each : unscaled) each.learning_rate = 1;
    const AdamMoments::Next own = moments_.next({step.gradients, unscaled, step.gradient_scale});
    std::vector<ops::LambUpdate> updates;
    std::vector<Tensor> gradients;
    ops::UpdatedPieces<3> pieces;
    for (size_t i = 0; i < own.members.size(); ++i) {
      const ParameterSet::Member& member = set_.members()[own.members[i]];
      const auto split = [&](const Tensor& whole, std::vector<Tensor>& into) {
        for (const Tensor& matrix : matrices_of(member.parameter, whole.view(member.parameter.value.sizes())))
          into.push_back(matrix);
      };
      split(own.gradients[i], gradients);
      for (size_t k = 0; k < pieces.size(); ++k) split(own.pieces[k][i], pieces[k]);
      const bool adapts = adapt_vectors_ || member.parameter.value.dim() >= 2;
      updates.resize(gradients.size(), {own.updates[i], step.parameters[member.index].learning_rate, adapts});
    }
    ops::update(updates, gradients, pieces);
  }

  bool adapt_vectors_;
  ParameterSet set_;
  AdamMoments moments_;
};

const bool kLambRegistered = add_optimizer<Lamb, LambOptions>(
    "lamb",
    "m and v as in `adam`; u = (m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w; w ← w − lr·(‖w‖/‖u‖)·u for each "
    "matrix or vector",
    "You et al. 2020, arXiv 1904.00962");

}  // namespace
}  // namespace plumb
