// Stochastic gradient descent with momentum (Polyak 1964), weight decay as an L2 penalty:
//   g ← g + weight_decay·w;  b ← momentum·b + g;  w ← w − lr·b
// and with Nesterov's momentum (Sutskever et al. 2013), written for the gradient at w:
//   w ← w − lr·(g + momentum·b)
#include "plumb/ops/dispatch.h"
#include "plumb/ops/kernels/optimizer.h"
#include "plumb/optim/checks.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {
namespace {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
};
void describe(Fields& field, SgdOptions& options) {
  field("momentum", options.momentum, "how much of b is kept; 0: none");
  field("nesterov", options.nesterov, "whether the step is g + momentum·b");
}

class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const SgdOptions& options)
      : Optimizer(parameters), options_(options), set_(parameters), momentum_(set_.zeros()) {
    check_below_one("train.sgd.momentum", options.momentum);
  }

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors;
    set_.append(tensors, "momentum", momentum_);
    return tensors;
  }
  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    set_.load(tensors, "momentum", momentum_, origin);
  }

 private:
  void update(const OptimizerStep& step) override {
    ops::dispatch(momentum_, [&]<typename T>() {
      T* b = momentum_.data_ptr<T>();
      set_.for_each_range(step, [&](const ParameterSet::Member& member, size_t, int64_t offset, int64_t n) {
        const ParameterStep& settings = step.parameters[member.index];
        const kernels::SgdStep scalars{.rate = settings.learning_rate,
                                       .momentum = options_.momentum,
                                       .decay = settings.weight_decay,
                                       .gradient_scale = step.gradient_scale,
                                       .nesterov = options_.nesterov};
        kernels::sgd(scalars, step.gradients[member.index].data_ptr<T>() + offset, b + member.begin + offset,
                     member.flat.data_ptr<T>() + offset, n);
      });
    });
  }

  SgdOptions options_;
  ParameterSet set_;
  Tensor momentum_;  // b
};

[[maybe_unused]] const bool kRenamed = rename_key("train.momentum", "train.sgd.momentum");

[[maybe_unused]] const bool kRegistered = optimizers().add(
    "sgd", "g ← g + weight_decay·w; b ← momentum·b + g; w ← w − lr·b, or w ← w − lr·(g + momentum·b) with `nesterov`",
    "Polyak 1964; Sutskever et al. 2013",
    [](const Parameters& parameters, const Options& options) {
      return std::make_unique<Sgd>(parameters, options.as<SgdOptions>());
    },
    Options(SgdOptions{}));

}  // namespace
}  // namespace plumb
