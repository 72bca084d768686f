// The largest and smallest eigenvalues of the loss's Hessian, of its Gauss–Newton part, and of the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/statistics.h"

namespace plumb {

struct CurvatureSplitOptions {
  int64_t steps = 40;       // of Lanczos, for each of the three matrices
  int64_t layer_steps = 0;  // the same for the diagonal block of each layer; 0: blocks are not measured
  uint64_t seed = 1;        // of the start vectors
  double label_smoothing = 0;
  int64_t graph_memory = int64_t{6} << 30;  // for the Hessian's graphs, and again for those of the Gauss–Newton part
  Group group{};                            // processes that share the products; rank 0 runs Lanczos
};

/// Eigenvalues with Ritz residuals as their errors.
struct Extremes {
  Extreme max, min;
};

/// For H = G + R (gauss_newton.h), or one of its diagonal blocks.
struct SplitExtremes {
  Extremes hessian, gauss_newton, rest;
};

struct CurvatureSplit {
  SplitExtremes whole;
  struct Layer {
    LayerId id;
    int64_t parameters = 0;
    SplitExtremes extremes;
  };
  std::vector<Layer> layers;  // empty if blocks are not measured
};
void describe(Fields& field, CurvatureSplit::Layer& layer);
void describe(Fields& field, CurvatureSplit& split);

/// Called with the name of each matrix before it is measured.
using SplitProgress = std::function<void(const std::string&)>;

/// The loss is the model's mean cross-entropy over all target tokens of the micro-batches, without dropout. Throws
/// Error if `steps` is less than 1. All processes of a group must call it with the same arguments; only rank 0 gets the
/// result, the others an empty one.
CurvatureSplit measure_curvature_split(Model& model, const std::vector<Batch>& micro_batches,
                                       const CurvatureSplitOptions& options, const SplitProgress& progress = {});

/// The same over several initializations.
struct CurvatureSplitReport {
  struct Value {
    Interval over_seeds;
    double error = 0;  // the largest Ritz residual
  };
  struct Matrix {
    Value max, min;
  };
  struct Split {
    Matrix hessian, gauss_newton, rest;
  };
  struct Layer {
    LayerId id;
    int64_t parameters = 0;
    Split split;
  };
  Split whole;
  std::vector<Layer> layers;
};
void describe(Fields& field, CurvatureSplitReport::Layer& layer);
void describe(Fields& field, CurvatureSplitReport& report);

/// Throws Error if there are no measurements.
CurvatureSplitReport summarize(const std::vector<CurvatureSplit>& measurements);

}  // namespace plumb
