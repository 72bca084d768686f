// Unbiased rounding to bfloat16.
#pragma once

#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Identifies the random draws: element i uses 16 bits of philox(seed, stream, i / 8).
struct RoundingKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

/// Replaces every element x of a contiguous float32 tensor by one of its two bfloat16 neighbors, a below and b above in
/// magnitude: b with probability (x − a)/(b − a), otherwise a, so that the expectation is x. Since a bfloat16 number is
/// the upper half of a float32, this is exactly
///   the upper half of (bits of x) + r, with r uniform in 0 … 65535.
/// bfloat16 numbers, infinities and NaN are unchanged. Each draw depends only on the key and the element's index.
/// Rae et al. 2021, arXiv 2112.11446, appendix C. Throws Error for other tensors.
void round_stochastically(const Tensor& x, const RoundingKey& key);

/// Replaces every element of a float32 tensor by the nearest bfloat16 number, ties to even.
void round_to_nearest(const Tensor& x);

}  // namespace plumb::ops
