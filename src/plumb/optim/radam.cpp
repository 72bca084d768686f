// The paper has ρ_t > 4; this follows the authors' code and PyTorch's, with 5, and eps added to √v.
#include <cmath>

#include "plumb/optim/adam.h"

namespace plumb {
namespace {

AdamRule rectified(const AdamOptions& options) {
  return [beta2 = options.beta2, eps = options.eps](ops::AdamUpdate& update, int64_t t) {
    const double longest = 2 / (1 - beta2) - 1;
    const double power = std::pow(beta2, static_cast<double>(t));
    const double length = longest - 2 * static_cast<double>(t) * power / (1 - power);
    if (length <= 5) {
      update.root_scale = 0;
      update.eps = 1;
      return;
    }
    update.step *= std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    update.eps = eps / std::sqrt(1 - power);
  };
}

const bool kRAdamRegistered = optimizers().add(
    "radam",
    "Adam's step times r_t, which rectifies the variance of 1/√v; without v while ρ_t = ρ∞ − 2t·β₂ᵗ/(1 − β₂ᵗ) ≤ 5",
    "Liu et al. 2020, arXiv 1908.03265",
    [](const Parameters& parameters, const Options& options) {
      const auto& adam = options.as<AdamOptions>();
      return make_adam(parameters, adam, rectified(adam));
    },
    Options(AdamOptions{.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}));

}  // namespace
}  // namespace plumb
