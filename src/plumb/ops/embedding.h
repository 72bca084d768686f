// Rows of a table by token id.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Throws Error unless all ids lie in the vocabulary.
void require_tokens(const std::vector<int64_t>& ids, int64_t vocabulary);

/// scale · table[ids]; table: (vocabulary, width) → (tokens, width). Differentiable to any order. Throws Error on an id
/// outside the table.
Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale);

}  // namespace plumb::ops
