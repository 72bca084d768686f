// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013), weight decay as an L2 penalty:
//   b ← momentum·b + g + weight_decay·w;  w ← w − lr·b
#include "plumb/ops/kernels/optimizer.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/update.h"

namespace plumb {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options)
      : parameters_(parameters), options_(options), momentum_(at::zeros_like(parameters.flat())) {}

  void step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale) override {
    const kernels::SgdStep step{learning_rate, options_.momentum, options_.weight_decay, gradient_scale};
    ops::dispatch(momentum_, [&]<typename T>() {
      T* b = momentum_.data_ptr<T>();
      T* w = parameters_.flat().data_ptr<T>();
      for_each_piece<T>(parameters_, gradients, [&](const T* gradient, int64_t begin, int64_t n) {
        kernels::sgd(step, gradient, b + begin, w + begin, n);
      });
    });
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
