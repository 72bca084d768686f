// Matrices of vectors of length 1, as in nGPT: Loshchilov et al. 2024, arXiv 2410.01131.
#pragma once

#include <vector>

#include "plumb/nn/parameters.h"

namespace plumb {

/// Normalizes the vectors of embeddings and weight matrices to length 1: the columns of matrices that write to the
/// stream (attention_output, feed_forward_output), the rows of all others. Other parameters and zero vectors are left
/// unchanged. `frozen` [parameter]: whether to skip it; empty: none.
void normalize_matrices(const Parameters& parameters, const std::vector<bool>& frozen = {});

/// The part u − w·(w·u)/‖w‖² of a change u (parameters) of these vectors w that `normalize_matrices` leaves, to first
/// order: n(w − η·u) = w − η·(that part) + O(η²) for w of length 1. A copy; other parameters' changes stay as they are.
Tensor tangent_to_unit_matrices(const Parameters& parameters, const Tensor& change);

}  // namespace plumb
