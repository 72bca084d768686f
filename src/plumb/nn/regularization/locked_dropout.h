// Locked, or variational, dropout: Gal & Ghahramani 2016, "A theoretically grounded application of dropout in recurrent
// neural networks", arXiv 1512.05287.
//   x'_t = m∘x_t/(1 − p), m of independent elements that are 1 with probability 1 − p, the same for all positions t of
//   a sequence.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/dropout.h"

namespace plumb {

/// x: (tokens, width) → the same. The mask of a sequence depends on the key and on the row at which the sequence begins
/// in the step's batch, not on how that batch is split; the runs of the key are ignored.
Tensor locked_dropout(const Tensor& x, const Ragged& layout, double p, const ops::DropoutKey& key);

}  // namespace plumb
