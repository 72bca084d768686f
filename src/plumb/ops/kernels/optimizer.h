// The passes over memory of optimisers other than Adam (elementwise.h), and the sum behind the gradient's norm.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013) in one pass over n elements:
/// b ← momentum·b + gradient_scale·g + decay·w; w ← w − rate·b.
struct SgdStep {
  double rate, momentum, decay, gradient_scale;
};
template <typename T>
void sgd(const SgdStep& step, const T* gradient, T* b, T* w, int64_t n);

/// Σ x², in double precision.
template <typename T>
double sum_of_squares(const T* x, int64_t n);

}  // namespace plumb::kernels
