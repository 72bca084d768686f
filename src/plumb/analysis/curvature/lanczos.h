// The Lanczos process with full re-orthogonalization, for any symmetric operator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "plumb/analysis/curvature/basis.h"
#include "plumb/analysis/curvature/random_signs.h"
#include "plumb/analysis/curvature/recurrence.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// v (n) → A·v (n) with A symmetric.
using LinearOperator = std::function<Tensor(const Tensor&)>;

struct LanczosOptions {
  int64_t steps = 80;
  /// Stop when the residuals of both extreme Ritz values are below this fraction of the largest magnitude; 0: never.
  double tolerance = 0;
  /// Keep the basis in a file in this directory; empty: in memory, n·steps elements.
  std::filesystem::path basis_directory;
  /// If several processes run Lanczos together, each with its part of every vector; all get the same results.
  SumOfParts sum_of_parts{};
};

/// One Lanczos process, step by step, for callers that compute several products at a time:
/// while (!process.done()) process.advance(A·process.direction()).
class Lanczos {
 public:
  /// Starts from the vector (n), or this process's part of it, float32 or float64, which need not be normalized. Throws
  /// Error if it is zero.
  Lanczos(const Tensor& start, const LanczosOptions& options);

  [[nodiscard]] bool done() const { return recurrence_.done(); }
  /// The vector (n) whose product is needed next.
  [[nodiscard]] const Tensor& direction() const { return basis_[basis_.count() - 1]; }
  /// Takes the product A·direction(). Throws Error if it is not finite.
  void advance(const Tensor& product);
  [[nodiscard]] const Tridiagonal& result() const { return recurrence_.result(); }
  /// The vectors v_1, v_2, … of the basis: result().alpha.size() of them, plus the next direction unless done().
  [[nodiscard]] const Basis& basis() const { return basis_; }

 private:
  LanczosRecurrence recurrence_;
  Basis basis_;
};

/// Runs the whole process from the start vector: A·V = V·T + β_m·v_{m+1}·e_mᵀ. α and β are always float64.
Tridiagonal lanczos(const LinearOperator& multiply, const Tensor& start, const LanczosOptions& options);

/// A start vector with independent elements ±1/√n, a function of (seed, index) only, on any device. For all unit
/// vectors with independent elements, E vvᵀ = I/n, so that n·vᵀf(A)v is an unbiased estimate of tr f(A); random signs
/// give the trace the smallest variance (Hutchinson 1990).
Tensor random_probe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index);

/// Its elements, one piece after another.
class RandomProbe {
 public:
  RandomProbe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index)
      : type_(type), signs_(n, seed, index) {}
  /// The next `count` of them.
  Tensor next(int64_t count);

 private:
  at::TensorOptions type_;
  RandomSigns signs_;
};

}  // namespace plumb
