// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013), weight decay as an L2 penalty:
//   b ← momentum·b + g + weight_decay·w;  w ← w − lr·b
#include "plumb/ops/update.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/update.h"

namespace plumb {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options)
      : parameters_(parameters), options_(options), momentum_(at::zeros_like(parameters.flat())) {}

  void step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale) override {
    const ops::SgdUpdate update{.rate = learning_rate,
                                .momentum = options_.momentum,
                                .decay = options_.weight_decay,
                                .gradient_scale = gradient_scale};
    ops::sgd_update(update, gradients, parameters_.split(momentum_), parameters_.values());
  }

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors;
    append_pieces(tensors, "momentum.", parameters_, momentum_);
    return tensors;
  }

  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    load_pieces(tensors, "momentum.", parameters_, momentum_, origin);
  }

 private:
  Parameters parameters_;  // shares the model's buffer
  OptimizerOptions options_;
  Tensor momentum_;
};

[[maybe_unused]] const bool kRegistered =
    optimizers().add("sgd", "b ← momentum·b + g + weight_decay·w; w ← w − lr·b", "Polyak 1964; Sutskever et al. 2013",
                     [](const Parameters& parameters, const OptimizerOptions& options) {
                       return std::make_unique<Sgd>(parameters, options);
                     });

}  // namespace
}  // namespace plumb
