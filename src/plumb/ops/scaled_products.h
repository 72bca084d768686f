// Products of features whose magnitudes differ by more than the range of floating-point numbers: scales are given by
// their logarithms, and only differences of them are exponentiated.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Represents features·exp(scale), element by element; without features, exp(scale).
struct Scaled {
  Tensor features;  // (rows, positions, features); may be undefined
  Tensor scale;     // the same shape, or (rows, positions, 1) with features
};

/// P_tj = Σ_i q_ti·k_ji for j ≤ t, and 0 for j > t → (rows, positions, positions), where the number of positions is a
/// power of two. `peak`, with the shape of the scales, bounds the scales: peak_t ≥ the key's scale at each j ≤ t, and
/// query scale_t + peak_t ≤ 0. Then no product overflows, and only products below the smallest floating-point number
/// underflow.
///
/// With a reference r per feature, the product of a block of queries and a block of keys is that of q·exp(scale + r)
/// and k·exp(scale − r). In rows where the peak rises little, r is its value at the first position, for all positions
/// at once. In other rows, and on devices other than the CPU (checking the peaks would wait for them), the triangle is
/// cut into squares of half, a quarter, … of the positions, in which all keys precede all queries, and r is the peak of
/// the last key: both exponents are at most 0. A reference never comes from a later position or another row.
Tensor causal_products(const Scaled& query, const Scaled& key, const Tensor& peak);

}  // namespace plumb::ops
