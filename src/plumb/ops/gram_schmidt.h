// A pass of Gram–Schmidt over many long vectors: the memory-bound part of Lanczos' re-orthogonalization.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// For vectors v_k and w of equal size: w ← w − Σ subtract_k·v_k if `subtract` is not empty; then returns the products
/// v_k·w (zeros unless `products`), followed by w·w. Computed in float64, in place, without an autograd graph; the sums
/// do not depend on the number of threads. Throws Error unless all are contiguous and of one size and type.
std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w);

}  // namespace plumb::ops
