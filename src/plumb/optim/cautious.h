// Cautious optimizers (Liang et al. 2024, arXiv 2411.16085), train.cautious.
#pragma once

#include <memory>

#include "plumb/optim/optimizer.h"

namespace plumb {

/// Another optimizer without those elements of its step that the gradient does not point along; what remains of each
/// parameter's step is lengthened in return. For a step w ← w − lr·(u + weight_decay·w):
///   φ = 1[u·g > 0];  w ← w − lr·[u·φ/max(mean of φ, 0.001) + weight_decay·w]
/// where u includes the decay if decay_is_in_direction(). The state is that of the other optimizer. Throws Error if it
/// averages the weights: its parameters move by more than a step.
std::unique_ptr<Optimizer> make_cautious(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters);

}  // namespace plumb
