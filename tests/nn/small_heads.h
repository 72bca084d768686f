// A small shape of heads for tests of attention.
#pragma once

#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb::test {

inline constexpr int64_t kHeads = 2;
inline constexpr int64_t kSize = 4;
inline constexpr int64_t kWidth = kHeads * kSize;

/// The largest absolute difference of elements.
inline double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace plumb::test
