// Cautious optimizers (Liang et al. 2024, arXiv 2411.16085), train.cautious.
#pragma once

#include <memory>

#include "plumb/optim/optimizer.h"

namespace plumb {

/// Wraps an optimizer and drops the elements of its step whose sign disagrees with the gradient; the rest of each
/// parameter's step is scaled up to compensate. For a step w ← w − lr·(u + weight_decay·w):
///   φ = 1[u·g > 0];  w ← w − lr·[u·φ/max(mean of φ, 0.001) + weight_decay·w]
/// where u includes the decay if decay_is_in_direction(). The state is that of the wrapped optimizer. Throws Error if
/// that averages the weights: its parameters move by more than a step.
std::unique_ptr<Optimizer> make_cautious(std::unique_ptr<Optimizer> optimizer, const Parameters& parameters);

}  // namespace plumb
