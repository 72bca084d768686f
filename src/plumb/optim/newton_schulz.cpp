#include "plumb/optim/newton_schulz.h"

#include <algorithm>

#include "plumb/ops/linear.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

/// Products of float32 or float64 matrices, with operands rounded if so wanted.
struct Products {
  bool rounded;

  [[nodiscard]] Tensor operand(const Tensor& x) const { return rounded ? ops::to_bfloat16(x) : x; }
  /// a·bᵀ, which is symmetric; a·b for symmetric b.
  [[nodiscard]] Tensor symmetric(const Tensor& a, const Tensor& b) const {
    const Tensor left = operand(a);
    return ops::symmetric_product(left, a.is_same(b) ? left : operand(b));
  }
  /// a·I + b·A + c·A²
  [[nodiscard]] Tensor polynomial(const Tensor& square) const {
    const Tensor factor = operand(square);
    return ops::symmetric_product(factor, factor, {.scale = kC, .plus = square, .plus_scale = kB, .diagonal = kA});
  }
  [[nodiscard]] Tensor times(const Tensor& a, const Tensor& b) const { return ops::gemm(operand(a), operand(b)); }
};

/// `steps` steps of the iteration for an X with at most as many rows as columns, as a matrix Q: X_steps = Q·X₀. All
/// matrices are polynomials of A₀ = X₀·X₀ᵀ, thus symmetric, and commute: A ← P·A·P and Q ← P·Q.
Tensor product_of_polynomials(const Products& products, const Tensor& x, int64_t steps) {
  Tensor square = products.symmetric(x, x), q;
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor p = products.polynomial(square);
    if (step + 1 < steps) square = products.symmetric(products.symmetric(p, square), p);
    q = step == 0 ? p : products.symmetric(p, q);
  }
  return q;
}

}  // namespace

Tensor newton_schulz(const Tensor& matrix, int64_t steps, bool bfloat16) {
  const at::NoGradGuard no_graph;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = (tall ? matrix.t() : matrix).contiguous();
  x = x / (x.norm() + 1e-7);
  const Products products{ops::rounds_to_bfloat16(x) || (bfloat16 && x.scalar_type() == at::kFloat)};
  // Of a long matrix, only the first and the last product of several steps need all columns. More steps at once, or
  // rounded products, would lose the small singular values: the errors of A grow by up to a² in each step.
  constexpr int64_t kAtOnce = 3;
  const bool several = !products.rounded && 2 * x.size(1) > 3 * x.size(0);
  for (int64_t step = 0; step < steps;) {
    const int64_t now = several ? std::min(kAtOnce, steps - step) : 1;
    x = products.times(product_of_polynomials(products, x, now), x);
    step += now;
  }
  return tall ? x.t() : x;
}

}  // namespace plumb
