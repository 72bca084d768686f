// Matrices of vectors of length 1, as in nGPT: Loshchilov et al. 2024, arXiv 2410.01131.
#pragma once

#include <vector>

#include "plumb/nn/parameters.h"

namespace plumb {

/// Normalizes the vectors of embeddings and weight matrices to length 1: the columns of matrices that write to the
/// stream (attention_output, feed_forward_output), the rows of all others. Other parameters and zero vectors are left
/// unchanged. `frozen` [parameter]: whether to skip it; empty: none.
void normalize_matrices(const Parameters& parameters, const std::vector<bool>& frozen = {});

}  // namespace plumb
