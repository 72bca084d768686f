#include "plumb/nn/norm/norm.h"

namespace plumb {

Registry<NormFactory>& norms() {
  static Registry<NormFactory> registry(
      "norm", {.title = "Norms",
               .key = "model.norm",
               .before = "Computed over the features of each token, or for each feature over the tokens of a batch. "
                         "eps is `model.norm_eps`; γ and β are trained."});
  return registry;
}

}  // namespace plumb
