// The measurement: the spectrum of a model's Hessian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/analysis/curvature/spectrum_estimate.h"
#include "plumb/base/config.h"

namespace plumb {

struct SpectrumOptions {
  int64_t steps = 80;     // Lanczos steps per probe
  int64_t probes = 1;     // number of start vectors
  int64_t at_once = 1;    // probes that advance together: they share rebuilt gradient graphs; each has its own basis
  uint64_t seed = 1;      // for the probes
  double tolerance = 0;   // to end a probe early; see LanczosOptions
  bool dense = false;     // compute all eigenvalues, with one product per parameter
  bool by_layer = false;  // the diagonal block of each layer instead of the full Hessian; not with `dense` or `at_once`
  double sigma = 0;       // width of the density's kernel; 0: a hundredth of the range
  HessianOptions hessian;
  std::filesystem::path basis_directory;
};

/// Throws Error on options that make no sense, of the whole operator or of its diagonal blocks.
void require_valid(const SpectrumOptions& options, bool blocks);

/// Throws Error if all eigenvalues are wanted of vectors that are `divided`.
void require_undivided(const SpectrumOptions& options, bool divided);

/// The vectors on which an operator acts.
struct VectorSpace {
  VectorSpace(int64_t size) : size(size) {}  // NOLINT: a number of elements is one

  int64_t size;               // elements
  SumOfParts sum_of_parts{};  // if several processes, each with a part of every vector, call the measurement together;
  /// Then also this one's part of a whole vector, whose next elements `next` returns.
  std::function<Tensor(const std::function<Tensor(int64_t count)>& next)> part{};
};

/// (products done, products planned, what is known so far).
using SpectrumProgress = std::function<void(int64_t, int64_t, const std::string&)>;

/// The diagonal block of a layer.
struct BlockSpectrum {
  LayerId id;
  int64_t parameters = 0;
  Spectrum spectrum;
};

struct LanczosSettings {
  int64_t steps = 0;  // maximum per probe
  int64_t probes = 0;
  uint64_t seed = 0;
};

/// With several processes, only rank 0 has all of it; the others lack the spectra, `products` and `hvp_seconds`.
struct SpectrumReport {
  at::ScalarType type = at::kFloat;
  int64_t parameters = 0;
  int64_t tokens = 0;  // target tokens
  double label_smoothing = 0;
  double loss = 0;
  double gradient_norm = 0;
  std::optional<LanczosSettings> lanczos;  // empty if dense
  std::optional<Spectrum> whole;           // empty if by layer
  std::vector<BlockSpectrum> blocks;
  int64_t micro_batches = 0;
  int64_t graphs_kept = 0;  // number of micro-batches, of all processes
  int64_t products = 0;
  int64_t threads = 0;          // of this process
  int64_t processes = 1;        // that shared the products
  double gradient_seconds = 0;  // for one gradient
  double hvp_seconds = 0;       // for one product, the median
  double seconds = 0;           // for the entire measurement
};
/// The keys of docs/formats/probe.md.
void describe(Fields& field, SpectrumReport& report);

/// Loss, extremes, trace, Frobenius norm, density and quantiles of ∇²L over all parameters, or of its diagonal block
/// for each layer, where L is the mean over all target tokens of the micro-batches. Throws Error on invalid options.
///
/// All processes of HessianOptions::group must call it with the same arguments. They share the products; rank 0 runs
/// Lanczos, holds its basis and reports progress. If the model is divided (HessianOptions::division), so are the
/// vectors: the first process of each part runs Lanczos together with those of the other parts, and all of them get the
/// result; not with `dense`.
SpectrumReport measure_spectrum(Model& model, const std::vector<Batch>& micro_batches, const SpectrumOptions& options,
                                const SpectrumProgress& progress = {});

/// The spectrum of any symmetric operator on vectors of this type: the Hessian of your own function
/// (function_hessian.h), a Fisher matrix. Options that concern only the model's Hessian are ignored. Throws Error
/// on invalid options.
Spectrum measure_spectrum(const LinearOperator& multiply, const VectorSpace& space, const at::TensorOptions& type,
                          const SpectrumOptions& options, const SpectrumProgress& progress = {});

/// The same for an operator whose products with several vectors are cheaper together: `at_once` of them.
using SeveralProducts = std::function<std::vector<Tensor>(const std::vector<Tensor>& vectors)>;
Spectrum measure_spectrum(const SeveralProducts& multiply, const VectorSpace& space, const at::TensorOptions& type,
                          const SpectrumOptions& options, const SpectrumProgress& progress = {});

/// (places of operators, a vector for each) → their products.
using ProductsOfSome =
    std::function<std::vector<Tensor>(const std::vector<int64_t>& which, const std::vector<Tensor>& vectors)>;

/// The spectra of several symmetric operators whose products are cheaper together, such as the diagonal blocks of a
/// Hessian: spaces[i] are the i-th one's vectors. All advance one Lanczos step at a time. Throws Error on invalid
/// options, `dense` and `at_once` among them.
std::vector<Spectrum> measure_spectra(const ProductsOfSome& multiply, const std::vector<VectorSpace>& spaces,
                                      const at::TensorOptions& type, const SpectrumOptions& options,
                                      const SpectrumProgress& progress = {});

}  // namespace plumb
