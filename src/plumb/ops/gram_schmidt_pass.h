// The memory-bound pass of Lanczos' re-orthogonalization over plain memory, for any compiler.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace plumb::ops {

/// Calls work(first, last) for ranges that together are [0, count), in any threads.
using Ranges = std::function<void(int64_t count, const std::function<void(int64_t first, int64_t last)>& work)>;

/// For vectors v_k and w of `size` elements: w ← w − Σ subtract_k·v_k if `subtract` is not empty; then returns the
/// products v_k·w (zeros unless `products`), followed by w·w. Computed in float64 on the best instructions that the
/// machine has; the sums do not depend on how `ranges` cuts the work. T: float or double.
template <typename T>
std::vector<double> gram_schmidt_pass(const std::vector<const T*>& vectors, const std::vector<double>& subtract,
                                      bool products, int64_t size, T* w, const Ranges& ranges);

}  // namespace plumb::ops
