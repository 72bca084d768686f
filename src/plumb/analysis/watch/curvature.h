// The watch "curvature": its options and its results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"

namespace plumb {

/// [watch.curvature]
struct CurvatureWatchOptions {
  int64_t products = 10;
  int64_t first_products = 40;
  double tolerance = 0.01;
  double random_share = 0.1;
  int64_t reference_products = 0;
  std::vector<std::string> leave_out;
  double graph_memory_gib = 2.0;
};
void describe(Fields& field, CurvatureWatchOptions& options);

/// The largest eigenvalue that a search found: there is one within `residual` of `value`, which is at most λ_max.
struct EigenvalueSearch {
  double value = 0;
  double residual = 0;
  int64_t products = 0;  // Hessian-vector products
};
void describe(Fields& field, EigenvalueSearch& search);

/// λ_max of one matrix.
struct Sharpness {
  EigenvalueSearch found;
  std::string parameter;  // with the largest share of the squared eigenvector; empty if none has any
  double share = 0;       // this share
  std::optional<EigenvalueSearch> reference;  // a second search, from a random vector
  std::optional<double> threshold;            // the largest stable value at this learning rate
  std::optional<double> share_at_epsilon;  // of the squared eigenvector, in elements with √(v/(1 − β₂ᵗ)) < 10·eps
};
void describe(Fields& field, Sharpness& sharpness);

/// What the watch measures. Keys: docs/formats/run.md.
struct CurvatureMeasurement {
  static constexpr const char* kWatch = "curvature";
  Sharpness hessian;                        // of H
  std::optional<Sharpness> preconditioned;  // of P⁻¹H
  double gradients = 0;                     // the cost, without the second search, in gradients of the examples

  /// That of the matrix that the optimizer sees: P⁻¹H, or H if it has no preconditioner.
  [[nodiscard]] const Sharpness& seen() const { return preconditioned ? *preconditioned : hessian; }
};
void describe(Fields& field, CurvatureMeasurement& measurement);

}  // namespace plumb
