// ReZero, Bachlechner et al. 2020, arXiv 2003.04887:  x ← x + γ·dropout(f(x)), γ a trained scalar for each sub-layer
// from 0, no norm.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool registered = residual_schemes().add(
    "rezero", "x ← x + γ·dropout(f(x)), γ a trained scalar for each sub-layer, from 0; no norm",
    "Bachlechner et al. 2020, arXiv 2003.04887", [](Parameters& parameters, const StackShape& shape) {
      return make_tensor2tensor_scheme("", "dz", parameters, shape);
    });

}  // namespace
}  // namespace plumb
