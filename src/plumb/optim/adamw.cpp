// AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101): `adam`, which already has decoupled weight decay, with the usual
// constants of AdamW. As in most libraries, the decay is multiplied by the full learning rate, whereas the paper
// multiplies it by the schedule without the peak rate:
//   w ← w − lr·[(m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w]
// The two terms are added before they are subtracted from w: a factor (1 − lr·weight_decay) on w would round to 1 in
// float32 for lr·weight_decay below 3e-8, and nothing would decay.
#include "plumb/optim/adam.h"

namespace plumb {
namespace {

const bool kAdamwRegistered = optimizers().add(
    "adamw",
    "`adam` with β₂ = 0.999 and eps = 1e-8: w ← w − lr·[(m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + eps) + weight_decay·w]",
    "Loshchilov & Hutter 2019, arXiv 1711.05101",
    [](const Parameters& parameters, const Options& options) {
      return make_adam(parameters, options.as<AdamOptions>());
    },
    Options(AdamOptions{.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}));

}  // namespace
}  // namespace plumb
