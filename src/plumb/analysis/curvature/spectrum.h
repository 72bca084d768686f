// The measurement: the spectrum of a model's Hessian as a JSON document (docs/formats/spectrum.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/json.h"

namespace plumb {

struct SpectrumOptions {
  int64_t steps = 80;     // of Lanczos, for each probe
  int64_t probes = 1;     // start vectors
  int64_t at_once = 1;    // probes that advance together: a gradient's graph that is not kept serves all of them, and
                          // as many bases are held
  uint64_t seed = 1;      // of the probes
  double tolerance = 0;   // end a probe early, see LanczosOptions
  bool dense = false;     // every eigenvalue, by as many products as there are parameters
  bool by_layer = false;  // the diagonal block of every layer instead of the whole; not with `dense` or `at_once`
  double sigma = 0;       // of the density's kernel; 0: a hundredth of the range
  HessianOptions hessian;
  std::filesystem::path basis_directory;
};

/// (products done, products planned, what is known so far).
using SpectrumProgress = std::function<void(int64_t, int64_t, const std::string&)>;

/// Loss, extremes, trace, Frobenius norm, density and quantiles of ∇²L over all parameters, or of its diagonal block of
/// every layer, under "blocks"; L is the mean over all target tokens of the micro-batches. Throws Error on options that
/// make no measurement.
Json measure_spectrum(Model& model, const std::vector<Batch>& micro_batches, const SpectrumOptions& options,
                      const SpectrumProgress& progress = {});

}  // namespace plumb
