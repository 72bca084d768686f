#include "plumb/optim/clipping.h"

#include <cmath>

#include "plumb/ops/update.h"

namespace plumb {
namespace {

constexpr double kSmallestNorm = 1e-3;

/// Norms of the blocks of a tensor of a parameter's shape, in a shape that broadcasts against it.
Tensor block_norms(const Tensor& x) { return x.dim() < 2 ? x.norm() : at::norm(x.flatten(1), 2, {1}, true); }

Tensor clip_blocks(const Tensor& w, const Tensor& gradient, double limit) {
  const Tensor largest = block_norms(w).clamp_min(kSmallestNorm).mul_(limit);
  const Tensor norms = block_norms(gradient);
  // Where the limit is met the factor is exactly 1, even for a norm of 0; NaN stays NaN.
  const Tensor factor = at::where(norms <= largest, at::ones_like(norms), largest / norms);
  return w.dim() < 2 ? gradient * factor : (gradient.flatten(1) * factor).view_as(gradient);
}

}  // namespace

double global_norm(const std::vector<Tensor>& gradients) { return std::sqrt(ops::sum_of_squares(gradients)); }

ops::DeviceScalar square_norm(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings) {
  std::vector<Tensor> moving;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!settings[i].frozen) moving.push_back(gradients[i]);
  }
  return ops::sum_of_squares(moving);
}

double clip_scale(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1.0; }

std::vector<Tensor> clip_values(const std::vector<Tensor>& gradients, double limit) {
  const at::NoGradGuard no_graph;
  std::vector<Tensor> clipped;
  clipped.reserve(gradients.size());
  for (const Tensor& gradient : gradients) clipped.push_back(gradient.clamp(-limit, limit));
  return clipped;
}

std::vector<Tensor> clip_blocks(const Parameters& parameters, const std::vector<Tensor>& gradients, double limit) {
  const at::NoGradGuard no_graph;
  std::vector<Tensor> clipped;
  clipped.reserve(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    clipped.push_back(parameter.role == Role::readout ? gradients[i]
                                                      : clip_blocks(parameter.value.detach(), gradients[i], limit));
  }
  return clipped;
}

}  // namespace plumb
