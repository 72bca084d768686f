// Gradients that are used, or added to earlier ones, while the backward pass computes the others.
#pragma once

#include <functional>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// Gives the gradient of `outputs` (weighted by `grad_outputs`) with respect to leaves[i], plus earlier[i] unless that
/// is undefined or `earlier` is empty, to take(i, gradient) as soon as it is complete; that of leaves without influence
/// at last. Adds in place to what nobody else holds, so that all gradients are never held twice.
void take_gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& leaves,
                    const std::vector<Tensor>& grad_outputs, std::vector<Tensor> earlier,
                    const std::function<void(size_t, Tensor)>& take);

}  // namespace plumb
