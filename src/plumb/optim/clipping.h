// Gradient clipping: by norm, by value and by block.
#pragma once

#include <span>
#include <vector>

#include "plumb/nn/parameters.h"
#include "plumb/ops/device_scalar.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// Σ‖g‖² over the gradients of the parameters that are not frozen, summed in double precision in an order independent
/// of the number of threads.
ops::DeviceScalar square_norm(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings);

/// √Σ‖g‖² over all gradients, summed in the same order.
double global_norm(const std::vector<Tensor>& gradients);

/// The factor that limits the norm of the gradients to `limit` (Pascanu et al. 2013, arXiv 1211.5063):
/// min(1, limit/norm); 1 if limit is 0.
double clip_scale(double norm, double limit);

/// Gradients with every element limited to [−limit, limit]; NaN stays NaN.
std::vector<Tensor> clip_values(const std::vector<Tensor>& gradients, double limit);

/// Adaptive gradient clipping (Brock et al. 2021, arXiv 2102.06171): the gradient g of each block of weights w is
/// limited to a fraction of their norm,
///   g ← g·min(1, limit·max(‖w‖, 0.001)/‖g‖).
/// A block is a row of a matrix (the weights of one output feature, or one token's embedding) or a whole vector. A
/// classifier's output matrix is not clipped, as in the paper.
std::vector<Tensor> clip_blocks(const Parameters& parameters, const std::vector<Tensor>& gradients, double limit);

}  // namespace plumb
