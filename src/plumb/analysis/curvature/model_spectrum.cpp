// The spectrum of a model's Hessian, and how long its products take.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/ops/device.h"
#include "plumb/parallel/lead_products.h"

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

}  // namespace

SpectrumReport measure_spectrum(Model& model, const std::vector<Batch>& micro_batches, const SpectrumOptions& options,
                                const SpectrumProgress& progress) {
  require_valid(options, options.by_layer);
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
    if (options.by_layer) {
      const auto of_blocks = [&](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
        return timed.multiply_blocks(which, vectors);
      };
      std::vector<int64_t> sizes;
      for (const ParameterBlock& block : blocks) sizes.push_back(block.size);
      std::vector<Spectrum> spectra = measure_spectra(of_blocks, sizes, type, options, progress);
      for (size_t i = 0; i < blocks.size(); ++i)
        report.blocks.push_back({blocks[i].id, blocks[i].size, std::move(spectra[i])});
    } else {
      const SeveralProducts whole_products = [&](const std::vector<Tensor>& vectors) {
        return timed.multiply(vectors);
      };
      report.whole = measure_spectrum(whole_products, hessian.size(), type, options, progress);
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
