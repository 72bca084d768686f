#include "plumb/analysis/curvature/spectrum.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/analysis/curvature/dense.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

Spectrum measure_dense(const LinearOperator& multiply, int64_t n, const at::TensorOptions& type,
                       const SpectrumOptions& options, const SpectrumProgress& progress) {
  const DenseSpectrum found = dense_spectrum(multiply, n, type, [&](int64_t done) {
    if (progress) progress(done, n, done == n ? "eigenvalues" : "");
  });
  Spectrum spectrum = spectrum_of(found.eigenvalues, found.error, options.sigma);
  spectrum.asymmetry = found.asymmetry;
  return spectrum;
}

Lanczos make_lanczos(const VectorSpace& space, const at::TensorOptions& type, const SpectrumOptions& options,
                     int64_t probe) {
  LanczosOptions lanczos_options;
  lanczos_options.sum_of_parts = space.sum_of_parts;
  lanczos_options.steps = options.steps;
  lanczos_options.tolerance = options.tolerance;
  lanczos_options.basis_directory = options.basis_directory;
  RandomProbe start(space.size, type, options.seed, probe);
  return {space.part ? space.part([&](int64_t count) { return start.next(count); }) : start.next(space.size),
          lanczos_options};
}

/// [operator][probe]: the results of Lanczos. `at_once` probes of every operator advance together, one step at a time.
std::vector<std::vector<Tridiagonal>> run_lanczos(const ProductsOfSome& multiply,
                                                  const std::vector<VectorSpace>& spaces, const at::TensorOptions& type,
                                                  const SpectrumOptions& options, const SpectrumProgress& progress) {
  int64_t steps = 0;
  for (const VectorSpace& space : spaces) steps = std::max(steps, std::min(options.steps, space.size));
  std::vector<std::vector<Tridiagonal>> results(spaces.size());
  for (int64_t first = 0; first < options.probes; first += options.at_once) {
    const int64_t count = std::min(options.at_once, options.probes - first);
    std::vector<Lanczos> processes;  // of all operators, probe by probe
    for (int64_t probe = first; probe < first + count; ++probe) {
      for (const VectorSpace& space : spaces) processes.push_back(make_lanczos(space, type, options, probe));
    }
    for (int64_t done = 1;; ++done) {
      std::vector<Lanczos*> running;
      std::vector<int64_t> which;
      std::vector<Tensor> directions;
      for (size_t i = 0; i < processes.size(); ++i) {
        if (processes[i].done()) continue;
        running.push_back(&processes[i]);
        which.push_back(static_cast<int64_t>(i % spaces.size()));
        directions.push_back(processes[i].direction());
      }
      if (running.empty()) break;
      const std::vector<Tensor> products = multiply(which, directions);
      for (size_t i = 0; i < running.size(); ++i) running[i]->advance(products[i]);
      if (progress)
        progress(first * steps + done * count, options.probes * steps, extremes_so_far(running.front()->result()));
    }
    for (size_t i = 0; i < processes.size(); ++i) results[i % spaces.size()].push_back(processes[i].result());
  }
  return results;
}

}  // namespace

void require_valid(const SpectrumOptions& options, bool blocks) {
  if (blocks && (options.dense || options.at_once > 1)) {
    throw Error("blocks are measured by Lanczos, with one probe at a time", "omit --dense and --at-once");
  }
  if (options.dense || (options.steps >= 1 && options.probes >= 1 && options.at_once >= 1)) return;
  throw Error(
      fmt::format("invalid options: {} steps, {} probes, {} at once", options.steps, options.probes, options.at_once),
      "all must be at least 1");
}

void require_undivided(const SpectrumOptions& options, bool divided) {
  if (!options.dense || !divided) return;
  throw Error("all eigenvalues need the whole matrix in one process, which divided vectors do not give",
              "measure by Lanczos, or do not divide the model");
}

Spectrum measure_spectrum(const SeveralProducts& multiply, const VectorSpace& space, const at::TensorOptions& type,
                          const SpectrumOptions& options, const SpectrumProgress& progress) {
  require_valid(options, /*blocks=*/false);
  if (space.size < 1) throw Error(fmt::format("an operator on vectors of {} elements has no spectrum", space.size));
  if (options.by_layer) throw Error("only a model has layers", "omit by_layer, or pass the model");
  if (!options.dense) {
    const ProductsOfSome of_one = [&](const auto&, const std::vector<Tensor>& vectors) { return multiply(vectors); };
    return spectrum_of(run_lanczos(of_one, {space}, type, options, progress).front(), space.size, options.sigma);
  }
  require_undivided(options, space.part != nullptr);
  const auto one = [&](const Tensor& v) { return multiply({v}).front(); };
  return measure_dense(one, space.size, type, options, progress);
}

Spectrum measure_spectrum(const LinearOperator& multiply, const VectorSpace& space, const at::TensorOptions& type,
                          const SpectrumOptions& options, const SpectrumProgress& progress) {
  const SeveralProducts one_by_one = [&](const std::vector<Tensor>& vectors) {
    std::vector<Tensor> products;
    for (const Tensor& v : vectors) products.push_back(multiply(v));
    return products;
  };
  return measure_spectrum(one_by_one, space, type, options, progress);
}

std::vector<Spectrum> measure_spectra(const ProductsOfSome& multiply, const std::vector<VectorSpace>& spaces,
                                      const at::TensorOptions& type, const SpectrumOptions& options,
                                      const SpectrumProgress& progress) {
  require_valid(options, /*blocks=*/true);
  const std::vector<std::vector<Tridiagonal>> results = run_lanczos(multiply, spaces, type, options, progress);
  std::vector<Spectrum> spectra;
  for (size_t i = 0; i < spaces.size(); ++i) spectra.push_back(spectrum_of(results[i], spaces[i].size, options.sigma));
  return spectra;
}

}  // namespace plumb
