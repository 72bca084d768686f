// Ids and weights of a batch as tensors, copied from the host to the device.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// ids as int64 on the device of `like`. Except on the CPU, the tensor is cached, because every layer asks for the same
/// ids: do not write to it.
Tensor index_beside(const Tensor& like, const std::vector<int64_t>& ids);

/// values in the type and on the device of `like`.
Tensor values_beside(const Tensor& like, const std::vector<double>& values);

}  // namespace plumb::ops
