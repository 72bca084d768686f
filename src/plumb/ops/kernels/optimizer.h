// The memory-bound passes of the optimizers, and the sum of squares for gradient norms.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "plumb/ops/kernels/update_rules.h"

namespace plumb::kernels {

/// The second pass of LAMB, of w: w ← w − rate·(step·m/(√v·root_scale + eps) + decay·w). Takes m for the gradient, and
/// v and w, of which it changes only w.
struct LambStep {
  static constexpr size_t kVectors = 2;
  double step, root_scale, eps, decay, rate;
};

/// One pass over n elements. `vectors`: those that the rule changes, in the order in which it names them.
template <typename Update, typename T>
using UpdatePass = void (*)(const Update& update, const T* gradient, const std::array<T*, Update::kVectors>& vectors,
                            int64_t n);

/// Σw² and Σu² of LAMB, in double precision.
struct LambSquares {
  double w = 0, u = 0;
};

template <typename T>
struct OptimizerKernels {
#define PLUMB_TYPE_OF_PASS(Update) UpdatePass<Update, T>,
  std::tuple<PLUMB_FOR_EACH_UPDATE(PLUMB_TYPE_OF_PASS) UpdatePass<LambStep, T>> passes;
  /// The first pass of LAMB over n elements: updates m and v.
  LambSquares (*lamb_moments)(const ops::LambUpdate& update, const T* gradient, T* m, T* v, const T* w, int64_t n);
  /// Σ x², in double precision.
  double (*sum_of_squares)(const T* x, int64_t n);

  template <typename Update>
  void update(const Update& update, const T* gradient, const std::array<T*, Update::kVectors>& vectors,
              int64_t n) const {
    std::get<UpdatePass<Update, T>>(passes)(update, gradient, vectors, n);
  }
};

/// Those of the instructions in use.
template <typename T>
const OptimizerKernels<T>& optimizer();

}  // namespace plumb::kernels
