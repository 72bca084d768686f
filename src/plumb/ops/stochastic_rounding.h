// Rounding to bfloat16 that is right on average.
#pragma once

#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Identifies the draws: those of element i are 16 bits of philox(seed, stream, i / 8).
struct RoundingKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

/// Replaces every element x of a contiguous float32 tensor by one of the two numbers of bfloat16 next to it, a below
/// and b above in magnitude: by b with probability (x − a)/(b − a), and otherwise by a, so that the expectation is x. A
/// number of bfloat16 is the upper half of a float32, which makes this
///   the upper half of (bits of x) + r, with r uniform in 0 … 65535,
/// exactly. Numbers of bfloat16, infinities and NaN remain what they are. Each draw is a function of the key and the
/// element's index alone. Rae et al. 2021, arXiv 2112.11446, appendix C. Throws Error for other tensors.
void round_stochastically(const Tensor& x, const RoundingKey& key);

/// Replaces every element by the nearest number of bfloat16, ties to even.
void round_to_nearest(const Tensor& x);

}  // namespace plumb::ops
