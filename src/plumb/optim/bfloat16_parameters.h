// Parameters whose values are numbers of bfloat16 (train.parameters).
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/optim/optimizer.h"

namespace plumb {

/// How the parameters become numbers of bfloat16 after a step of the optimizer.
enum class Bfloat16Parameters {
  /// The step is taken from the rounded values w, and its result rounded stochastically (ops/stochastic_rounding.h):
  ///   w ← SR(w − Δ(w)),  E[SR(x)] = x.
  /// A step smaller than the distance between two numbers of bfloat16 is taken as a whole with a probability, where
  /// rounding to nearest would never take it.
  stochastic,
  /// The optimizer keeps a copy c in float32, on which it takes its steps: c ← c − Δ(c), w ← the number nearest to c.
  copy,
};

/// Another optimizer whose parameters are numbers of bfloat16, as Rae et al. 2021 (Gopher), arXiv 2112.11446, compare
/// the two ways in their appendix C. They are stored in float32, in which everything that reads them computes. The
/// parameters must be such numbers before the first step (ops::round_to_nearest); the copy begins with them. A draw is
/// a function of `seed`, the parameter's name, the element's index, and the number of steps taken, which is part of the
/// state ("rounded"), as is the copy ("float32.NAME"). Frozen parameters do not change. Throws Error unless the
/// parameters are float32, and if the optimizer averages the weights: it would move on what has not been rounded.
std::unique_ptr<Optimizer> with_bfloat16_parameters(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters,
                                                    Bfloat16Parameters kind, uint64_t seed);

}  // namespace plumb
