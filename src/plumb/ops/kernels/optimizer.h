// The memory-bound passes of the optimizers, and the sum of squares for gradient norms.
#pragma once

#include <array>
#include <cstdint>

#include "plumb/ops/kernels/update_rules.h"

namespace plumb::kernels {

/// The second pass of LAMB, of w: w ← w − rate·(step·m/(√v·root_scale + eps) + decay·w). Takes m for the gradient, and
/// v and w, of which it changes only w.
struct LambStep {
  static constexpr size_t kVectors = 2;
  double step, root_scale, eps, decay, rate;
};

/// One pass over n elements. `Update`: LambStep, or a rule of update_rules.h other than LambUpdate. `vectors`:
/// those that it changes, in the order in which the rule names them.
template <typename Update, typename T>
void update(const Update& update, const T* gradient, const std::array<T*, Update::kVectors>& vectors, int64_t n);

/// The first pass of LAMB over n elements: updates m and v, and returns Σw² and Σu², in double precision.
struct LambSquares {
  double w = 0, u = 0;
};
template <typename T>
LambSquares lamb_moments(const ops::LambUpdate& update, const T* gradient, T* m, T* v, const T* w, int64_t n);

/// Σ x², in double precision.
template <typename T>
double sum_of_squares(const T* x, int64_t n);

}  // namespace plumb::kernels
