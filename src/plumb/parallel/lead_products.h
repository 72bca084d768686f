// Iterations that one process leads while all compute its products with vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/parallel/group.h"

namespace plumb {

/// (numbers that say of which matrices, vectors) → products. What the numbers mean is up to the function.
using ProductFunction =
    std::function<std::vector<Tensor>(const std::vector<int64_t>& which, const std::vector<Tensor>& vectors)>;

/// Calls `lead` in rank 0 alone. The function that it receives has every rank call `products` with rank 0's arguments,
/// and returns what `products` does in rank 0; the other ranks return once `lead` has. So an iteration such as Lanczos
/// keeps its vectors in one process, and one process decides when it ends. In `products`, the ranks may exchange
/// something with each other. The vectors are one-dimensional and of type `type`; at least one for each call.
void lead_products(const Group& group, const at::TensorOptions& type, const ProductFunction& products,
                   const std::function<void(const ProductFunction&)>& lead);

}  // namespace plumb
