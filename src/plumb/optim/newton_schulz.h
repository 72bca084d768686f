// An orthogonal matrix close to a given one, computed only with matrix products.
#pragma once

#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb {

/// Approximates U·Vᵀ of the singular value decomposition U·S·Vᵀ of a matrix: its singular values are brought close to
/// 1. X₀ is the matrix divided by its Frobenius norm, transposed if it has more rows than columns; then, `steps` times,
///   A = X·Xᵀ;  X ← a·X + (b·A + c·A²)·X,  (a, b, c) = (3.4445, −4.7750, 2.0315),
/// which maps a singular value s to a·s + b·s³ + c·s⁵. The coefficients (Jordan 2024) increase small values fastest:
/// after five steps, values that were above 0.0015 after the division lie between 0.68 and 1.21. Zero stays zero.
/// Not recorded by autograd. Uses the precision set by a PrecisionGuard; with `bfloat16`, the operands of products with
/// float32 matrices are rounded in any case.
Tensor newton_schulz(const Tensor& matrix, int64_t steps, bool bfloat16 = false);

}  // namespace plumb
