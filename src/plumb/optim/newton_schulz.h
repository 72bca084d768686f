// An orthogonal matrix near a given one, by matrix products alone.
#pragma once

#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb {

/// Nearly U·Vᵀ of the singular value decomposition U·S·Vᵀ of a matrix: its singular values brought near 1. X₀ is the
/// matrix divided by its Frobenius norm, transposed if it has more rows than columns; then, `steps` times,
///   A = X·Xᵀ;  X ← a·X + (b·A + c·A²)·X,  (a, b, c) = (3.4445, −4.7750, 2.0315),
/// which takes a singular value s to a·s + b·s³ + c·s⁵. The coefficients (Jordan 2024) raise small values fastest; what
/// is above 0.0015 after the division lies between 0.68 and 1.21 after five steps. Zero stays zero. Without a graph, in
/// the precision that a PrecisionGuard names.
Tensor newton_schulz(const Tensor& matrix, int64_t steps);

}  // namespace plumb
