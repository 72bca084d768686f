// Iterations led by one process, with matrix-vector products computed by all.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/parallel/group.h"

namespace plumb {

/// (numbers that select the matrices, vectors) → products. The function defines what the numbers mean.
using ProductFunction =
    std::function<std::vector<Tensor>(const std::vector<int64_t>& which, const std::vector<Tensor>& vectors)>;

/// Calls `lead` on rank 0 alone. The function passed to it has every rank call `products` with rank 0's arguments, and
/// returns rank 0's result; the other ranks return once `lead` has. Thus, an iteration such as Lanczos keeps its
/// vectors in one process, which decides when it ends. In `products`, the ranks may communicate with each other. The
/// vectors are one-dimensional and of type `type`; at least one per call.
void serve_products(const Group& group, const at::TensorOptions& type, const ProductFunction& products,
                    const std::function<void(const ProductFunction&)>& lead);

}  // namespace plumb
