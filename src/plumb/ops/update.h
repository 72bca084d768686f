// Parameter updates of optimizers, in one pass over memory, in place and without an autograd graph.
#pragma once

#include <vector>

#include "plumb/ops/number.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

// An update covers a list of pieces, such as one per parameter: the gradient, optimizer state and parameter of piece i
// have the same number of elements, and each piece has its own settings. State and parameters must be contiguous. The
// pieces are divided among threads as if they were one vector, so many small pieces cost no more than a large one.
// Updates throw Error if the lists do not match or the element types differ.

/// Adam: Kingma & Ba 2015, arXiv 1412.6980. With g = gradient_scale·gradient:
///   m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  w ← w − step·m/(√v·root_scale + eps) − decay·w,
/// where step = lr/(1−β₁ᵗ), root_scale = 1/√(1−β₂ᵗ) and decay = lr·weight_decay.
struct AdamUpdate {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double step = 0;
  double root_scale = 1;
  double decay = 0;
  double gradient_scale = 1;
  bool operator==(const AdamUpdate&) const = default;
};
void adam_update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
                 const std::vector<Tensor>& m, const std::vector<Tensor>& v, const std::vector<Tensor>& parameters);

/// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013):
///   d = gradient_scale·gradient + decay·w;  b ← momentum·b + d;  w ← w − rate·b, or w − rate·(d + momentum·b) with
/// `nesterov`.
struct SgdUpdate {
  double rate = 0;
  double momentum = 0;
  double decay = 0;
  double gradient_scale = 1;
  bool nesterov = false;
};
void sgd_update(const std::vector<SgdUpdate>& updates, const std::vector<Tensor>& gradients,
                const std::vector<Tensor>& momentum, const std::vector<Tensor>& parameters);

/// Σ x² over all elements of all tensors, in float64, in an order independent of the number of threads.
Number sum_of_squares(const std::vector<Tensor>& tensors);

}  // namespace plumb::ops
