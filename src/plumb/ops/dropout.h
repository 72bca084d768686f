// Dropout with a mask that is a function of (seed, step, site, position).
#pragma once

#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Identifies the mask: `stream` encodes the step and the location in the model (see nn/context.h).
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
  /// If x is a subset of the rows of a larger matrix: which rows (Ragged::runs). Empty if x is the whole matrix.
  std::vector<RowRun> runs = {};
};

/// Keeps each element with probability 1 − p, rounded to 1/65536, and divides it by that; p = 0 returns x itself. A
/// subset of the rows gets the same mask as in the whole matrix, so the mask does not depend on how a batch is divided.
/// Throws Error unless p is from 0 to 1.
Tensor dropout(const Tensor& x, double p, const DropoutKey& key);

/// residual + dropout(x) in one pass. Also throws Error if the shapes differ.
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

}  // namespace plumb::ops
