// A place in a computation that is noticed when the backward pass reaches it.
#pragma once

#include <functional>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// These tensors as they are. The backward pass calls `reached` once, when it has the gradients of all of them, and
/// before it goes on to what they were computed from.
std::vector<Tensor> called_in_backward(const std::vector<Tensor>& tensors, const std::function<void()>& reached);

}  // namespace plumb::ops
