// Ids as a tensor.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// ids as int64 on the device of `like`.
inline Tensor index_beside(const Tensor& like, const std::vector<int64_t>& ids) {
  return at::tensor(at::ArrayRef<int64_t>(ids), at::TensorOptions(at::kLong)).to(like.device());
}

}  // namespace plumb::ops
