// The updates of optimizers that treat every element alike: their equations, and the coefficients of one step. Each
// reads g = gradient_scale·gradient, and changes kVectors vectors: the optimizer's state, then the parameter w.
#pragma once

#include <cstddef>

namespace plumb::ops {

/// Adam: Kingma & Ba 2015, arXiv 1412.6980; of m, v and w:
///   m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  w ← w − [step·m/(√v·root_scale + eps) + decay·w],
/// where step = lr/(1−β₁ᵗ), root_scale = 1/√(1−β₂ᵗ) and decay = lr·weight_decay.
struct AdamUpdate {
  static constexpr size_t kVectors = 3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double step = 0;
  double root_scale = 1;
  double decay = 0;
  double gradient_scale = 1;
  bool operator==(const AdamUpdate&) const = default;
};

/// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013); of b and w:
///   d = g + decay·w;  b ← momentum·b + d;  w ← w − rate·b, or w − rate·(d + momentum·b) with `nesterov`.
struct SgdUpdate {
  static constexpr size_t kVectors = 2;
  double rate = 0;
  double momentum = 0;
  double decay = 0;
  double gradient_scale = 1;
  bool nesterov = false;
};

/// Gradient descent with a running mean of the weights (Polyak & Juditsky 1992); of a and w:
///   w ← w − rate·(g + decay·w);  a ← a + share·(w − a).
struct AveragedUpdate {
  static constexpr size_t kVectors = 2;
  double rate = 0;
  double decay = 0;
  double share = 0;
  double gradient_scale = 1;
};

/// Lion: Chen et al. 2023, arXiv 2302.06675; of m and w:
///   u = sign(β₁m + (1−β₁)g);  m ← β₂m + (1−β₂)g;  w ← w − rate·(u + decay·w).  sign(NaN) is NaN.
struct LionUpdate {
  static constexpr size_t kVectors = 2;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double rate = 0;
  double decay = 0;
  double gradient_scale = 1;
};

/// Schedule-Free AdamW: Defazio et al. 2024, arXiv 2405.15682; of z, x, v and w = (1−β₁)z + β₁x:
///   v ← β₂v + (1−β₂)g²;  z ← z − rate·[g/(√v·root_scale + eps) + decay·w];  x ← x + share·(z − x);  w ← z + β₁(x − z).
struct ScheduleFreeUpdate {
  static constexpr size_t kVectors = 4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double rate = 0;
  double root_scale = 1;
  double decay = 0;
  double share = 0;
  double gradient_scale = 1;
};

/// LAMB: You et al. 2020, arXiv 1904.00962; of m, v and w, with m and v as in Adam, for a piece that is one matrix or
/// vector:
///   u = step·m/(√v·root_scale + eps) + decay·w;  w ← w − rate·(‖w‖/‖u‖)·u;  the ratio is 1 if a norm is 0, and unless
/// `adapts`. Here step = 1/(1−β₁ᵗ) and decay = weight_decay.
struct LambUpdate : AdamUpdate {
  double rate = 0;
  bool adapts = true;
};

/// All of them that take one pass over memory. What `visit` expands to ends with its separator.
#define PLUMB_FOR_EACH_UPDATE(visit)                                                             \
  visit(ops::AdamUpdate) visit(ops::SgdUpdate) visit(ops::AveragedUpdate) visit(ops::LionUpdate) \
      visit(ops::ScheduleFreeUpdate)

}  // namespace plumb::ops
