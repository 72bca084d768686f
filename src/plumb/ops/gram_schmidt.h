// A pass of Gram–Schmidt over many long vectors, the memory traffic behind Lanczos' re-orthogonalization.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// With vectors v_k and w of equal size: w ← w − Σ subtract_k·v_k, where `subtract` is not empty; then returns the
/// products v_k·w, or zeros unless `products`, and as the last one w·w. In float64, with sums that do not depend on the
/// number of threads. In place and without a graph.
std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w);

}  // namespace plumb::ops
