#include "plumb/analysis/curvature/spectrum.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/curvature/dense.h"
#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/ops/device.h"
#include "plumb/parallel/lead_products.h"

namespace plumb {
namespace {

/// Eigenvalues below this fraction of the largest magnitude count as zero.
constexpr double kZeroBand = 1e-3;

/// Products that record their time: with the whole Hessian, or with the blocks of the given indices.
class TimedProducts {
 public:
  explicit TimedProducts(const ProductFunction& products) : products_(products) {}
  Tensor operator()(const Tensor& v) { return multiply({v}).front(); }
  std::vector<Tensor> multiply(const std::vector<Tensor>& vectors) { return multiply_blocks({}, vectors); }
  std::vector<Tensor> multiply_blocks(const std::vector<int64_t>& blocks, const std::vector<Tensor>& vectors) {
    const Stopwatch watch;
    std::vector<Tensor> products = products_(blocks, vectors);
    if (!products.empty()) ops::synchronize(products.front().device());
    seconds_.insert(seconds_.end(), products.size(), watch.seconds() / static_cast<double>(products.size()));
    return products;
  }
  [[nodiscard]] double median_seconds() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.at(sorted.size() / 2);
  }
  [[nodiscard]] size_t products() const { return seconds_.size(); }

 private:
  const ProductFunction& products_;
  std::vector<double> seconds_;
};

/// The extreme Ritz value over all probes: `sign` is +1 for the largest, −1 for the smallest.
Extreme extreme_of(const std::vector<ProbeSpectrum>& probes, double sign) {
  const auto extreme = [sign](const ProbeSpectrum& probe) {
    const size_t place = sign > 0 ? probe.ritz.values.size() - 1 : 0;
    return Extreme{probe.ritz.values[place], probe.ritz.residuals[place] + probe.rounding};
  };
  Extreme best = extreme(probes.front());
  for (const ProbeSpectrum& probe : probes) {
    if (const Extreme other = extreme(probe); sign * other.value > sign * best.value) best = other;
  }
  return best;
}

/// The parts common to both methods, given the extremes; `exact` if the probes contain all eigenvalues.
void describe_distribution(Spectrum& spectrum, const std::vector<Ritz>& probes, double n, bool exact, double sigma) {
  const auto mean_of = [&](const std::function<double(double)>& f) {
    Estimate mean = spectral_mean(probes, f);
    if (exact) mean.error = 0;
    return mean;
  };
  const auto scaled = [](const Estimate& estimate, double factor) {
    return Estimate{factor * estimate.mean, estimate.error ? std::optional(factor * *estimate.error) : std::nullopt};
  };
  spectrum.trace = scaled(mean_of([](double x) { return x; }), n);
  const Estimate square = mean_of([](double x) { return x * x; });
  spectrum.frobenius.mean = std::sqrt(n * square.mean);
  // d√(n·s) = n/(2·√(n·s))·ds
  if (exact) spectrum.frobenius.error = 0;
  if (!exact && square.error && spectrum.frobenius.mean > 0)
    spectrum.frobenius.error = n * *square.error / (2 * spectrum.frobenius.mean);
  const double band = kZeroBand * std::max(std::abs(spectrum.max.value), std::abs(spectrum.min.value));
  spectrum.zero_band = band;
  spectrum.negative = mean_of([band](double x) { return x < -band ? 1.0 : 0.0; });
  spectrum.positive = mean_of([band](double x) { return x > band ? 1.0 : 0.0; });
  for (const double share : {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99})
    spectrum.quantiles.emplace_back(share, spectral_quantile(probes, share));
  spectrum.density = smoothed_density(probes, sigma);
}

Spectrum measure_dense(const LinearOperator& multiply, int64_t n, const at::TensorOptions& type,
                       const SpectrumOptions& options, const SpectrumProgress& progress) {
  const DenseSpectrum found = dense_spectrum(multiply, n, type, [&](int64_t done) {
    if (progress) progress(done, n, done == n ? "eigenvalues" : "");
  });
  Spectrum spectrum;
  spectrum.max = {found.eigenvalues.back(), found.error};
  spectrum.min = {found.eigenvalues.front(), found.error};
  describe_distribution(spectrum, {as_probe(found.eigenvalues)}, static_cast<double>(n), true, options.sigma);
  spectrum.asymmetry = found.asymmetry;
  spectrum.eigenvalues = found.eigenvalues;
  return spectrum;
}

Lanczos make_lanczos(int64_t size, const at::TensorOptions& type, const SpectrumOptions& options, int64_t probe) {
  LanczosOptions lanczos_options;
  lanczos_options.steps = options.steps;
  lanczos_options.tolerance = options.tolerance;
  lanczos_options.basis_directory = options.basis_directory;
  return {random_probe(size, type, options.seed, probe), lanczos_options};
}

/// Maps the processes to advance and their directions to products.
using Products = std::function<std::vector<Tensor>(const std::vector<size_t>&, const std::vector<Tensor>&)>;

/// Runs Lanczos processes to completion, one step of each at a time; on_step(steps done, the first process still
/// running).
std::vector<Tridiagonal> run_together(std::vector<Lanczos> processes, const Products& multiply,
                                      const std::function<void(int64_t, const Tridiagonal&)>& on_step) {
  for (int64_t done = 1;; ++done) {
    std::vector<size_t> running;
    std::vector<Tensor> directions;
    for (size_t i = 0; i < processes.size(); ++i) {
      if (processes[i].done()) continue;
      running.push_back(i);
      directions.push_back(processes[i].direction());
    }
    if (running.empty()) break;
    const std::vector<Tensor> products = multiply(running, directions);
    for (size_t i = 0; i < running.size(); ++i) processes[running[i]].advance(products[i]);
    on_step(done, processes[running.front()].result());
  }
  std::vector<Tridiagonal> results;
  for (const Lanczos& process : processes) results.push_back(process.result());
  return results;
}

std::string extremes_so_far(const Tridiagonal& tridiagonal) {
  const Ritz found = ritz(tridiagonal);
  return fmt::format("λ_max {:.4g}, λ_min {:.4g}", found.values.back(), found.values.front());
}

/// The Lanczos results of some probes for a matrix of n rows.
Spectrum spectrum_of(const std::vector<Tridiagonal>& tridiagonals, int64_t n, double sigma) {
  Spectrum spectrum;
  std::vector<Ritz> probes;
  for (const Tridiagonal& tridiagonal : tridiagonals) {
    probes.push_back(ritz(tridiagonal));
    spectrum.probes.push_back(
        {std::ssize(tridiagonal.alpha), tridiagonal.exhausted, tridiagonal.rounding, probes.back()});
  }
  spectrum.max = extreme_of(spectrum.probes, 1);
  spectrum.min = extreme_of(spectrum.probes, -1);
  describe_distribution(spectrum, probes, static_cast<double>(n), false, sigma);
  return spectrum;
}

/// `multiply` forms the products with several vectors (n).
Spectrum measure_lanczos(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& multiply, int64_t n,
                         const at::TensorOptions& type, const SpectrumOptions& options,
                         const SpectrumProgress& progress) {
  const int64_t steps = std::min(options.steps, n);
  std::vector<Tridiagonal> results;
  for (int64_t first = 0; first < options.probes; first += options.at_once) {
    const int64_t count = std::min(options.at_once, options.probes - first);
    std::vector<Lanczos> processes;
    for (int64_t i = 0; i < count; ++i) processes.push_back(make_lanczos(n, type, options, first + i));
    const auto products = [&](const std::vector<size_t>&, const std::vector<Tensor>& directions) {
      return multiply(directions);
    };
    const auto report = [&](int64_t done, const Tridiagonal& so_far) {
      if (progress) progress(first * steps + done * count, options.probes * steps, extremes_so_far(so_far));
    };
    for (Tridiagonal& result : run_together(std::move(processes), products, report))
      results.push_back(std::move(result));
  }
  return spectrum_of(results, n, options.sigma);
}

/// The diagonal blocks of the layers, all advancing one step at a time.
std::vector<BlockSpectrum> measure_layers(TimedProducts& multiply, const std::vector<ParameterBlock>& blocks,
                                          const at::TensorOptions& type, const SpectrumOptions& options,
                                          const SpectrumProgress& progress) {
  std::vector<std::vector<Tridiagonal>> results(blocks.size());
  for (int64_t probe = 0; probe < options.probes; ++probe) {
    std::vector<Lanczos> processes;
    for (const ParameterBlock& block : blocks) processes.push_back(make_lanczos(block.size, type, options, probe));
    const auto products = [&](const std::vector<size_t>& running, const std::vector<Tensor>& directions) {
      return multiply.multiply_blocks({running.begin(), running.end()}, directions);
    };
    const auto report = [&](int64_t done, const Tridiagonal& so_far) {
      if (progress) progress(probe * options.steps + done, options.probes * options.steps, extremes_so_far(so_far));
    };
    std::vector<Tridiagonal> ended = run_together(std::move(processes), products, report);
    for (size_t i = 0; i < blocks.size(); ++i) results[i].push_back(std::move(ended[i]));
  }
  std::vector<BlockSpectrum> spectra;
  for (size_t i = 0; i < blocks.size(); ++i)
    spectra.push_back({blocks[i].id, blocks[i].size, spectrum_of(results[i], blocks[i].size, options.sigma)});
  return spectra;
}

void require_work(const SpectrumOptions& options) {
  if (options.dense || (options.steps >= 1 && options.probes >= 1 && options.at_once >= 1)) return;
  throw Error(
      fmt::format("invalid options: {} steps, {} probes, {} at once", options.steps, options.probes, options.at_once),
      "all must be at least 1");
}

}  // namespace

Spectrum measure_spectrum(const LinearOperator& multiply, int64_t n, const at::TensorOptions& type,
                          const SpectrumOptions& options, const SpectrumProgress& progress) {
  require_work(options);
  if (n < 1) throw Error(fmt::format("an operator on vectors of {} elements has no spectrum", n));
  if (options.by_layer) throw Error("only a model has layers", "omit by_layer, or pass the model");
  if (options.dense) return measure_dense(multiply, n, type, options, progress);
  const auto one_by_one = [&](const std::vector<Tensor>& vectors) {
    std::vector<Tensor> products;
    for (const Tensor& v : vectors) products.push_back(multiply(v));
    return products;
  };
  return measure_lanczos(one_by_one, n, type, options, progress);
}

SpectrumReport measure_spectrum(Model& model, const std::vector<Batch>& micro_batches, const SpectrumOptions& options,
                                const SpectrumProgress& progress) {
  require_work(options);
  if (options.by_layer && (options.dense || options.at_once > 1)) {
    throw Error("blocks are measured by Lanczos, with one probe at a time", "omit --dense and --at-once");
  }
  const Stopwatch whole;
  const at::TensorOptions& type = model.parameters().options();
  const Group& group = options.hessian.group;
  const auto loss_and_gradient = [&] {
    return mean_loss(model, micro_batches, options.hessian.label_smoothing, options.hessian.loss, group);
  };
  loss_and_gradient();  // warm-up: the first pass also allocates memory and sets up kernels
  const Stopwatch gradient_watch;
  const MeanLoss mean = loss_and_gradient();
  SpectrumReport report;
  report.gradient_seconds = gradient_watch.seconds();
  if (!std::isfinite(mean.loss)) throw Error("the loss is not finite");

  HessianOperator hessian(model, micro_batches, options.hessian);
  const std::vector<ParameterBlock> blocks = layer_blocks(model.parameters());
  const ProductFunction multiply = [&](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
    if (which.empty()) return hessian.multiply(vectors);
    std::vector<ParameterBlock> some;
    for (const int64_t i : which) some.push_back(blocks.at(static_cast<size_t>(i)));
    return hessian.multiply_blocks(some, vectors);
  };
  report.type = model.parameters().type();
  report.parameters = hessian.size();
  report.tokens = hessian.tokens();
  report.label_smoothing = options.hessian.label_smoothing;
  report.loss = mean.loss;
  report.gradient_norm = mean.gradient.to(at::kDouble).norm().item<double>();
  if (!options.dense) report.lanczos = {std::min(options.steps, hessian.size()), options.probes, options.seed};
  lead_products(group, type, multiply, [&](const ProductFunction& products) {
    TimedProducts timed(products);
    if (options.dense) {
      report.whole = measure_dense(std::ref(timed), hessian.size(), type, options, progress);
    } else if (options.by_layer) {
      report.blocks = measure_layers(timed, blocks, type, options, progress);
    } else {
      const auto whole_products = [&](const std::vector<Tensor>& vectors) { return timed.multiply(vectors); };
      report.whole = measure_lanczos(whole_products, hessian.size(), type, options, progress);
    }
    report.products = static_cast<int64_t>(timed.products());
    report.hvp_seconds = timed.median_seconds();
  });
  report.micro_batches = std::ssize(micro_batches);
  report.graphs_kept = static_cast<int64_t>(group.sums({static_cast<double>(hessian.kept())})[0]);
  report.threads = omp_get_max_threads();
  report.processes = group.size();
  report.seconds = whole.seconds();
  return report;
}

}  // namespace plumb
