// The largest and smallest eigenvalues of the loss's Hessian, of its Gauss–Newton part, and of the rest.
#pragma once

#include <cstdint>
#include <string_view>
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

/// The extreme eigenvalues of one matrix.
template <typename Value>
struct MatrixEnds {
  Value max, min;
};
template <typename Value>
void describe(Fields& field, MatrixEnds<Value>& ends) {
  field.section("max", ends.max);
  field.section("min", ends.min);
}

/// For H = G + R (gauss_newton.h), or one of its diagonal blocks.
template <typename Value>
struct SplitEnds {
  MatrixEnds<Value> hessian, gauss_newton, rest;
};
template <typename Value>
void describe(Fields& field, SplitEnds<Value>& ends) {
  field.section("hessian", ends.hessian);
  field.section("gauss_newton", ends.gauss_newton);
  field.section("rest", ends.rest);
}

void describe_place(Fields& field, std::string_view key, LayerId& id);  // result_fields.h
template <typename Value>
struct LayerSplit {
  LayerId id;
  int64_t parameters = 0;
  SplitEnds<Value> split;
};
template <typename Value>
void describe(Fields& field, LayerSplit<Value>& layer) {
  describe_place(field, "name", layer.id);
  field("parameters", layer.parameters);
  describe(field, layer.split);
}

/// A split of one model, or over several.
template <typename T>
struct ModelSplit {
  using Value = T;
  using Matrix = MatrixEnds<Value>;
  using Ends = SplitEnds<Value>;
  using Layer = LayerSplit<Value>;

  Ends whole;
  std::vector<Layer> layers;  // empty if blocks are not measured
};
template <typename Value>
void describe(Fields& field, ModelSplit<Value>& split) {
  describe(field, split.whole);
  field.sections("layers", split.layers);
}

/// Of one model: eigenvalues with Ritz residuals as their errors.
using CurvatureSplit = ModelSplit<Extreme>;
using Extremes = CurvatureSplit::Matrix;
using SplitExtremes = CurvatureSplit::Ends;
void describe(Fields& field, Extreme& extreme);

/// The loss is the model's mean cross-entropy over all target tokens of the micro-batches, without dropout. Throws
/// Error if `steps` is less than 1. All processes of a group must call it with the same arguments; only rank 0 gets the
/// result, the others an empty one.
CurvatureSplit measure_curvature_split(Model& model, const std::vector<Batch>& micro_batches,
                                       const CurvatureSplitOptions& options);

/// An eigenvalue over several initializations.
struct ExtremeOverSeeds {
  Interval over_seeds;
  double error = 0;  // the largest Ritz residual
};
void describe(Fields& field, ExtremeOverSeeds& extreme);
using CurvatureSplitReport = ModelSplit<ExtremeOverSeeds>;

/// Throws Error if there are no measurements.
CurvatureSplitReport summarize(const std::vector<CurvatureSplit>& measurements);

}  // namespace plumb
