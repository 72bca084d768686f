// Parameters held as bfloat16 numbers (train.parameters).
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/optim/optimizer.h"

namespace plumb {

/// How the parameters are rounded to bfloat16 after an optimizer step.
enum class Bfloat16Parameters {
  /// The step starts from the rounded values w, and its result is rounded stochastically (ops/stochastic_rounding.h):
  ///   w ← SR(w − Δ(w)),  E[SR(x)] = x.
  /// A step smaller than the spacing of bfloat16 numbers is then taken in full with some probability, where rounding to
  /// nearest would never take it.
  stochastic,
  /// The optimizer updates a copy c in float32: c ← c − Δ(c), w ← c rounded to the nearest.
  copy,
};

/// Wraps an optimizer so that its parameters are bfloat16 numbers; Rae et al. 2021 (Gopher), arXiv 2112.11446, compare
/// the two ways in appendix C. The parameters are stored in float32, and all computations with them are in float32.
/// They must already be bfloat16 numbers before the first step (ops::round_to_nearest); the copy starts from them. The
/// random numbers are a function of `seed`, the parameter's name, the element's index and the number of steps taken.
/// That number ("rounded") is part of the state, as is the copy ("float32.NAME"). Frozen parameters do not change.
/// Throws Error unless the parameters are float32, and if the optimizer averages the weights, since it would continue
/// from unrounded ones.
std::unique_ptr<Optimizer> with_bfloat16_parameters(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters,
                                                    Bfloat16Parameters kind, uint64_t seed);

}  // namespace plumb
