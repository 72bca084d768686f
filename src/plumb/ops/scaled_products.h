// Products of features whose sizes differ by more than the range of floating-point numbers: each row carries the
// logarithms of its scales, and exponentials are taken of differences only.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// features·exp(scale), element by element; without features, exp(scale).
struct Scaled {
  Tensor features;  // (rows, positions, features); may be undefined
  Tensor scale;     // the same shape, or (rows, positions, 1) with features
};

/// P_tj = Σ_i q_ti·k_ji for j ≤ t, and 0 for j > t → (rows, positions, positions), where the number of positions is a
/// power of two. `peak`, of the shape of the scales, bounds what a position may meet: peak_t ≥ the key's scale at each
/// j ≤ t, and query scale_t + peak_t ≤ 0. Then no product overflows, and only those are lost that are smaller than the
/// smallest number.
///
/// With a reference r per feature, the product of a block of queries and a block of keys is that of q·exp(scale + r)
/// and k·exp(scale − r). Where the peak rises little, r is its value at the first position, for all positions at once.
/// Elsewhere, and on devices that would have to be waited for, the triangle is cut into squares of half, a quarter, …
/// of the positions, in which all keys precede all queries, and r is the peak of the last key: both exponents are at
/// most 0. No reference belongs to a later position or to another row.
Tensor causal_products(const Scaled& query, const Scaled& key, const Tensor& peak);

}  // namespace plumb::ops
