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
  /// If x is a part of the rows of a larger matrix, which those are (Ragged::runs); empty: x is the whole.
  std::vector<RowRun> runs = {};
};

/// Each element survives with probability 1 − p and is divided by it; p = 0 returns x itself. The probability is
/// rounded to 1/65536. The mask of a part of the rows is that part of the mask of the whole, so it does not depend on
/// how a batch is divided.
Tensor dropout(const Tensor& x, double p, const DropoutKey& key);

/// residual + dropout(x) in one pass.
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

}  // namespace plumb::ops
