#include "plumb/analysis/curvature/spectrum.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/curvature/dense.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/analysis/curvature/quadrature.h"
#include "plumb/base/error.h"
#include "plumb/base/timing.h"

namespace plumb {
namespace {

/// Eigenvalues count as zero below this share of the largest magnitude.
constexpr double kZeroBand = 1e-3;

/// An operator that keeps how long each product took.
class TimedOperator {
 public:
  explicit TimedOperator(HessianOperator& hessian) : hessian_(hessian) {}
  Tensor operator()(const Tensor& v) { return multiply({v}).front(); }
  std::vector<Tensor> multiply(const std::vector<Tensor>& vectors) {
    return timed([&] { return hessian_.multiply(vectors); });
  }
  std::vector<Tensor> multiply_blocks(const std::vector<ParameterBlock>& blocks, const std::vector<Tensor>& vectors) {
    return timed([&] { return hessian_.multiply_blocks(blocks, vectors); });
  }
  [[nodiscard]] double median_seconds() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.at(sorted.size() / 2);
  }
  [[nodiscard]] size_t products() const { return seconds_.size(); }

 private:
  template <typename Work>
  std::vector<Tensor> timed(const Work& work) {
    const Stopwatch watch;
    std::vector<Tensor> products = work();
    seconds_.insert(seconds_.end(), products.size(), watch.seconds() / static_cast<double>(products.size()));
    return products;
  }

  HessianOperator& hessian_;
  std::vector<double> seconds_;
};

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// The extreme Ritz value of all probes, with its residual and the rounding of its probe as error: `sign` is +1 for the
/// largest, −1 for the smallest.
void put_extreme(Json& json, const std::string& name, const std::vector<Ritz>& probes,
                 const std::vector<double>& rounding, double sign) {
  size_t best = 0;
  const auto place = [sign](const Ritz& probe) { return sign > 0 ? probe.values.size() - 1 : 0; };
  const auto value = [&](size_t i) { return probes[i].values[place(probes[i])]; };
  for (size_t i = 1; i < probes.size(); ++i) {
    if (sign * value(i) > sign * value(best)) best = i;
  }
  json[name] = value(best);
  json[name + "_error"] = probes[best].residuals[place(probes[best])] + rounding[best];
}

/// What both methods say of the distribution; `exact` if the probes hold every eigenvalue.
void put_distribution(Json& json, const std::vector<Ritz>& probes, double n, bool exact, double sigma) {
  const auto error = [exact](const std::optional<double>& found) { return exact ? Json(0.0) : or_null(found); };
  const Estimate mean = spectral_mean(probes, [](double x) { return x; });
  json["trace"] = n * mean.mean;
  json["trace_error"] = error(mean.error ? std::optional(n * *mean.error) : std::nullopt);
  const Estimate square = spectral_mean(probes, [](double x) { return x * x; });
  const double frobenius = std::sqrt(n * square.mean);
  json["frobenius"] = frobenius;
  // d√(n·s) = n/(2·√(n·s))·ds
  json["frobenius_error"] =
      error(square.error && frobenius > 0 ? std::optional(n * *square.error / (2 * frobenius)) : std::nullopt);
  const double band = kZeroBand * std::max(std::abs(json["max"].get<double>()), std::abs(json["min"].get<double>()));
  const Estimate negative = spectral_mean(probes, [band](double x) { return x < -band ? 1.0 : 0.0; });
  const Estimate positive = spectral_mean(probes, [band](double x) { return x > band ? 1.0 : 0.0; });
  json["mass"] = {{"zero_band", band},
                  {"negative", negative.mean},
                  {"negative_error", error(negative.error)},
                  {"positive", positive.mean},
                  {"positive_error", error(positive.error)}};
  for (const char* share : {"0.01", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99"}) {
    json["quantiles"][share] = spectral_quantile(probes, std::stod(share));
  }
  const Density density = smoothed_density(probes, sigma);
  json["density"] = {{"sigma", density.sigma}, {"x", density.x}, {"y", density.y}, {"low", Json()}, {"high", Json()}};
  if (density.low.empty()) return;
  json["density"]["low"] = density.low;
  json["density"]["high"] = density.high;
}

void put_dense(Json& json, TimedOperator& multiply, const HessianOperator& hessian, at::ScalarType type,
               const SpectrumOptions& options, const SpectrumProgress& progress) {
  const int64_t n = hessian.size();
  const DenseSpectrum spectrum = dense_spectrum(std::ref(multiply), n, type, [&](int64_t done) {
    if (progress) progress(done, n, done == n ? "eigenvalues" : "");
  });
  json["max"] = spectrum.eigenvalues.back();
  json["max_error"] = spectrum.error;
  json["min"] = spectrum.eigenvalues.front();
  json["min_error"] = spectrum.error;
  put_distribution(json, {as_probe(spectrum.eigenvalues)}, static_cast<double>(n), true, options.sigma);
  json["asymmetry"] = spectrum.asymmetry;
  json["eigenvalues"] = spectrum.eigenvalues;
}

Lanczos make_lanczos(int64_t size, at::ScalarType type, const SpectrumOptions& options, int64_t probe) {
  LanczosOptions lanczos_options;
  lanczos_options.steps = options.steps;
  lanczos_options.tolerance = options.tolerance;
  lanczos_options.basis_directory = options.basis_directory;
  return {random_probe(size, type, options.seed, probe), lanczos_options};
}

/// Which processes are to advance, and their directions → the products.
using Products = std::function<std::vector<Tensor>(const std::vector<size_t>&, const std::vector<Tensor>&)>;

/// Runs Lanczos processes to their end, a step of each after the other; on_step(steps done, the first that still ran).
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
  return fmt::format("max {:.4g} min {:.4g}", found.values.back(), found.values.front());
}

/// What Lanczos from some probes says of a matrix of n rows.
void put_probes(Json& json, const std::vector<Tridiagonal>& tridiagonals, int64_t n, double sigma) {
  std::vector<Ritz> probes;
  std::vector<double> rounding;
  Json listed = Json::array();
  for (const Tridiagonal& tridiagonal : tridiagonals) {
    const Ritz found = ritz(tridiagonal);
    listed.push_back({{"probe", listed.size()},
                      {"steps", tridiagonal.alpha.size()},
                      {"exhausted", tridiagonal.exhausted},
                      {"rounding", tridiagonal.rounding},
                      {"values", found.values},
                      {"weights", found.weights},
                      {"residuals", found.residuals}});
    probes.push_back(found);
    rounding.push_back(tridiagonal.rounding);
  }
  put_extreme(json, "max", probes, rounding, 1);
  put_extreme(json, "min", probes, rounding, -1);
  put_distribution(json, probes, static_cast<double>(n), false, sigma);
  json["ritz"] = listed;
}

void put_lanczos(Json& json, TimedOperator& multiply, const HessianOperator& hessian, at::ScalarType type,
                 const SpectrumOptions& options, const SpectrumProgress& progress) {
  const int64_t steps = std::min(options.steps, hessian.size());
  std::vector<Tridiagonal> results;
  for (int64_t first = 0; first < options.probes; first += options.at_once) {
    const int64_t count = std::min(options.at_once, options.probes - first);
    std::vector<Lanczos> processes;
    for (int64_t i = 0; i < count; ++i) processes.push_back(make_lanczos(hessian.size(), type, options, first + i));
    const auto products = [&](const std::vector<size_t>&, const std::vector<Tensor>& directions) {
      return multiply.multiply(directions);
    };
    const auto report = [&](int64_t done, const Tridiagonal& so_far) {
      if (progress) progress(first * steps + done * count, options.probes * steps, extremes_so_far(so_far));
    };
    for (Tridiagonal& result : run_together(std::move(processes), products, report))
      results.push_back(std::move(result));
  }
  put_probes(json, results, hessian.size(), options.sigma);
}

/// The diagonal blocks of the layers, all of them a step further at a time.
void put_layers(Json& json, TimedOperator& multiply, const std::vector<ParameterBlock>& blocks, at::ScalarType type,
                const SpectrumOptions& options, const SpectrumProgress& progress) {
  std::vector<std::vector<Tridiagonal>> results(blocks.size());
  for (int64_t probe = 0; probe < options.probes; ++probe) {
    std::vector<Lanczos> processes;
    for (const ParameterBlock& block : blocks) processes.push_back(make_lanczos(block.size, type, options, probe));
    const auto products = [&](const std::vector<size_t>& running, const std::vector<Tensor>& directions) {
      std::vector<ParameterBlock> some;
      for (const size_t i : running) some.push_back(blocks[i]);
      return multiply.multiply_blocks(some, directions);
    };
    const auto report = [&](int64_t done, const Tridiagonal& so_far) {
      if (progress) progress(probe * options.steps + done, options.probes * options.steps, extremes_so_far(so_far));
    };
    std::vector<Tridiagonal> ended = run_together(std::move(processes), products, report);
    for (size_t i = 0; i < blocks.size(); ++i) results[i].push_back(std::move(ended[i]));
  }
  json["blocks"] = Json::array();
  for (size_t i = 0; i < blocks.size(); ++i) {
    Json block = {{"name", to_string(blocks[i].id)}, {"parameters", blocks[i].size}};
    put_probes(block, results[i], blocks[i].size, options.sigma);
    json["blocks"].push_back(std::move(block));
  }
}

}  // namespace

Json measure_spectrum(Model& model, const std::vector<Batch>& micro_batches, const SpectrumOptions& options,
                      const SpectrumProgress& progress) {
  if (!options.dense && (options.steps < 1 || options.probes < 1 || options.at_once < 1)) {
    throw Error(fmt::format("{} steps from {} probes, {} at once, measure nothing", options.steps, options.probes,
                            options.at_once),
                "all are at least 1");
  }
  if (options.by_layer && (options.dense || options.at_once > 1)) {
    throw Error("the layers' blocks are measured by Lanczos, one probe of each at a time",
                "leave out --dense and --at-once");
  }
  const Stopwatch whole;
  const at::ScalarType type = model.parameters().type();
  mean_loss(model, micro_batches, options.hessian.label_smoothing);  // the first pass also pays for memory and kernels
  const Stopwatch gradient_watch;
  const MeanLoss mean = mean_loss(model, micro_batches, options.hessian.label_smoothing);
  const double gradient_seconds = gradient_watch.seconds();
  if (!std::isfinite(mean.loss)) throw Error("the loss is not finite");

  HessianOperator hessian(model, micro_batches, options.hessian);
  TimedOperator multiply(hessian);
  Json json = make_document("spectrum", 1);
  json["method"] = options.dense ? "dense" : "lanczos";
  json["dtype"] = type == at::kDouble ? "float64" : "float32";
  json["parameters"] = hessian.size();
  json["tokens"] = hessian.tokens();
  json["label_smoothing"] = options.hessian.label_smoothing;
  json["loss"] = mean.loss;
  json["gradient_norm"] = mean.gradient.to(at::kDouble).norm().item<double>();
  if (!options.dense) {
    json["steps"] = std::min(options.steps, hessian.size());
    json["probes"] = options.probes;
    json["seed"] = options.seed;
  }
  if (options.dense) {
    put_dense(json, multiply, hessian, type, options, progress);
  } else if (options.by_layer) {
    put_layers(json, multiply, layer_blocks(model.parameters()), type, options, progress);
  } else {
    put_lanczos(json, multiply, hessian, type, options, progress);
  }
  json["micro_batches"] = micro_batches.size();
  json["graphs_kept"] = hessian.kept();
  json["products"] = multiply.products();
  json["threads"] = omp_get_max_threads();
  json["gradient_seconds"] = gradient_seconds;
  json["hvp_seconds"] = multiply.median_seconds();
  json["seconds"] = whole.seconds();
  return json;
}

}  // namespace plumb
