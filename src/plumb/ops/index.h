// Ids and weights of a batch as tensors: they come from the host, and each crosses over to another device once.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// ids as int64 on the device of `like`. On another device than the CPU the tensor is kept for the next time the same
/// ids are asked for, as every layer does: it must not be written to.
Tensor index_beside(const Tensor& like, const std::vector<int64_t>& ids);

/// values in the type and on the device of `like`.
Tensor values_beside(const Tensor& like, const std::vector<double>& values);

}  // namespace plumb::ops
