// The memory-bound passes of the optimizers, and the sum of squares for gradient norms.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// Adam, Kingma & Ba 2015, in one pass over elements [begin, end). With g = gradient_scale·gradient:
/// m ← β₁m + (1−β₁)g; v ← β₂v + (1−β₂)g²; w ← w − [step·m/(√v·root_scale + eps) + decay·w], where step = lr/(1−β₁ᵗ)
/// and root_scale = 1/√(1−β₂ᵗ).
struct AdamStep {
  double beta1, beta2, eps, step, root_scale, decay, gradient_scale;
};
template <typename T>
void adam(const AdamStep& step, const T* gradient, T* m, T* v, T* w, int64_t begin, int64_t end);

/// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013) in one pass over n elements:
/// d = gradient_scale·g + decay·w; b ← momentum·b + d; w ← w − rate·b, or w − rate·(d + momentum·b) with `nesterov`.
struct SgdStep {
  double rate, momentum, decay, gradient_scale;
  bool nesterov = false;
};
template <typename T>
void sgd(const SgdStep& step, const T* gradient, T* b, T* w, int64_t n);

/// Σ x², in double precision.
template <typename T>
double sum_of_squares(const T* x, int64_t n);

}  // namespace plumb::kernels
