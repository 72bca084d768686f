// The spectrum of a model's Hessian, and how long its products take.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/curvature/divided_vectors.h"
#include "plumb/analysis/curvature/logit_jacobian.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/ops/device.h"
#include "plumb/parallel/serve_products.h"

namespace plumb {
namespace {

/// Products that record their time: with the whole Hessian, or with the blocks of the given indices.
class TimedProducts {
 public:
  explicit TimedProducts(const ProductFunction& products) : products_(products) {}
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

/// Of the bases that are in memory at the same time, of vectors like this one.
int64_t basis_bytes(const SpectrumOptions& options, const Tensor& vector) {
  if (options.dense || !options.basis_directory.empty()) return 0;
  return (options.steps + 1) * options.at_once * static_cast<int64_t>(vector.nbytes());
}

}  // namespace

SpectrumReport measure_spectrum(Model& model, const std::vector<Batch>& micro_batches, const SpectrumOptions& options,
                                const SpectrumProgress& progress) {
  require_valid(options, options.by_layer);
  const Stopwatch whole;
  const at::TensorOptions& type = model.parameters().options();
  const Group& group = options.hessian.group;
  const LayerDivision* const division = options.hessian.division;
  require_undivided(options, division != nullptr);
  const auto loss_and_gradient = [&] {
    return mean_loss(model, micro_batches, options.hessian.label_smoothing, options.hessian.loss, group);
  };
  loss_and_gradient();  // warm-up: the first pass also allocates memory and sets up kernels
  const Stopwatch gradient_watch;
  const MeanLoss mean = loss_and_gradient();
  SpectrumReport report;
  report.gradient_seconds = gradient_watch.seconds();
  if (!std::isfinite(mean.loss)) throw Error("the loss is not finite");

  HessianOptions of_hessian = options.hessian;
  of_hessian.reserved_memory += basis_bytes(options, mean.gradient);
  HessianOperator hessian(model, micro_batches, of_hessian);
  const std::vector<ParameterBlock> blocks = layer_blocks(model.parameters());
  const DividedVectors divided(model.parameters(), division);
  const std::vector<size_t> all = all_places(model.parameters());
  // The vectors here are parts.
  const ProductFunction multiply = [&](const std::vector<int64_t>& which, const std::vector<Tensor>& parts) {
    std::vector<ParameterBlock> some;
    for (const int64_t i : which) some.push_back(blocks.at(static_cast<size_t>(i)));
    const auto places = [&](size_t i) -> const std::vector<size_t>& { return which.empty() ? all : some[i].places; };
    std::vector<Tensor> vectors;
    for (size_t i = 0; i < parts.size(); ++i) vectors.push_back(divided.elements(parts[i], places(i)));
    std::vector<Tensor> products = which.empty() ? hessian.multiply(vectors) : hessian.multiply_blocks(some, vectors);
    for (size_t i = 0; i < products.size(); ++i) products[i] = divided.part_of_derivatives(products[i], places(i));
    return products;
  };
  const VectorSpace space = divided.space(all);
  report.type = model.parameters().type();
  report.parameters = space.size;
  report.tokens = hessian.tokens();
  report.label_smoothing = options.hessian.label_smoothing;
  report.loss = mean.loss;
  const double norm = divided.part_of_derivatives(mean.gradient, all).to(at::kDouble).norm().item<double>();
  report.gradient_norm = space.sum_of_parts ? std::sqrt(space.sum_of_parts({norm * norm}).front()) : norm;
  if (!options.dense) report.lanczos = {std::min(options.steps, space.size), options.probes, options.seed};
  serve_products(group, type, multiply, [&](const ProductFunction& products) {
    TimedProducts timed(products);
    if (options.by_layer) {
      const auto of_blocks = [&](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
        return timed.multiply_blocks(which, vectors);
      };
      std::vector<VectorSpace> spaces;
      for (const ParameterBlock& block : blocks) spaces.push_back(divided.space(block.places));
      std::vector<Spectrum> spectra = measure_spectra(of_blocks, spaces, type, options, progress);
      for (size_t i = 0; i < blocks.size(); ++i)
        report.blocks.push_back({blocks[i].id, spaces[i].size, std::move(spectra[i])});
    } else {
      const SeveralProducts whole_products = [&](const std::vector<Tensor>& vectors) {
        return timed.multiply(vectors);
      };
      report.whole = measure_spectrum(whole_products, space, type, options, progress);
    }
    report.products = static_cast<int64_t>(timed.products());
    report.hvp_seconds = timed.median_seconds();
  });
  report.micro_batches = std::ssize(micro_batches);
  report.graphs_kept = static_cast<int64_t>(group.sums({static_cast<double>(hessian.kept())})[0]);
  report.threads = omp_get_max_threads();
  report.processes = group.size() * (division != nullptr ? division->ranks() : 1);
  report.seconds = whole.seconds();
  return report;
}

}  // namespace plumb
