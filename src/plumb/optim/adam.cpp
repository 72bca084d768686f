// Adam (Kingma & Ba 2015, arXiv 1412.6980) with decoupled weight decay (Loshchilov & Hutter 2019, arXiv 1711.05101):
//   m ← β₁m + (1 − β₁)g;  v ← β₂v + (1 − β₂)g²
//   w ← w − lr·[(m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w]
#include <cmath>

#include "plumb/ops/update.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/update.h"

namespace plumb {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const Parameters& parameters, const OptimizerOptions& options)
      : parameters_(parameters), options_(options), m_(at::zeros_like(parameters.flat())), v_(at::zeros_like(m_)) {}

  void step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale) override {
    const auto t = static_cast<double>(++steps_);
    const ops::AdamUpdate update{.beta1 = options_.beta1,
                                 .beta2 = options_.beta2,
                                 .eps = options_.eps,
                                 .step = learning_rate / (1 - std::pow(options_.beta1, t)),
                                 .root_scale = 1 / std::sqrt(1 - std::pow(options_.beta2, t)),
                                 .decay = learning_rate * options_.weight_decay,
                                 .gradient_scale = gradient_scale};
    ops::adam_update(update, gradients, parameters_.split(m_), parameters_.split(v_), parameters_.values());
  }

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors{{"step", at::full({1}, steps_, at::kLong)}};
    append_pieces(tensors, "m.", parameters_, m_);
    append_pieces(tensors, "v.", parameters_, v_);
    return tensors;
  }

  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    steps_ = find_tensor(tensors, "step", origin).item<int64_t>();
    load_pieces(tensors, "m.", parameters_, m_, origin);
    load_pieces(tensors, "v.", parameters_, v_, origin);
  }

 private:
  Parameters parameters_;  // shares the model's buffer
  OptimizerOptions options_;
  Tensor m_, v_;
  int64_t steps_ = 0;
};

[[maybe_unused]] const bool kRegistered = optimizers().add(
    "adam",
    "m ← β₁m + (1 − β₁)g; v ← β₂v + (1 − β₂)g²; w ← w − lr·[(m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w]",
    "Kingma & Ba 2015, arXiv 1412.6980; weight decay: Loshchilov & Hutter 2019, arXiv 1711.05101",
    [](const Parameters& parameters, const OptimizerOptions& options) {
      return std::make_unique<Adam>(parameters, options);
    });

}  // namespace
}  // namespace plumb
