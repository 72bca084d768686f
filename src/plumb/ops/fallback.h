// Slow paths of operations that have a fast one: copies to make tensors contiguous, and matrix products by LibTorch.
// LibTorch's profilers see them in the user's scope, under names that begin with kFallback.
#pragma once

#include <string>

#include "plumb/ops/torch.h"

namespace plumb::ops {

inline constexpr const char* kFallback = "slow path: ";

/// Records that `what` took the slow path. Callers do not record float64.
void note_fallback(const std::string& what);

/// The tensor itself if it is contiguous or undefined, else a copy, recorded as "WHAT: copy" unless it is float64.
Tensor as_contiguous(const Tensor& tensor, const char* what);

}  // namespace plumb::ops
