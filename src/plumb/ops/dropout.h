// Dropout with a mask that is a function of (seed, step, site, position).
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Identifies the mask: `stream` encodes the step and the location in the model (see nn/context.h).
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

/// Each element survives with probability 1 − p and is divided by it; p = 0 returns x itself. The probability is
/// rounded to 1/65536.
Tensor dropout(const Tensor& x, double p, const DropoutKey& key);

/// residual + dropout(x) in one pass.
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

}  // namespace plumb::ops
