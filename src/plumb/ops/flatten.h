// Several tensors as one vector.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// Splits a flat vector into consecutive views with the shapes of `like`; `joined` is the reverse (a copy without a
/// graph).
std::vector<Tensor> split_like(const Tensor& flat, const std::vector<Tensor>& like);
Tensor joined(const std::vector<Tensor>& tensors);

}  // namespace plumb
