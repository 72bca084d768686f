#include "plumb/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/kernels/optimizer.h"

namespace plumb {

Registry<OptimizerFactory>& optimizers() {
  static Registry<OptimizerFactory> registry("optimizer");
  return registry;
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          const VariantOptions& options) {
  const auto& entry = optimizers().at(name);
  return entry.make(parameters, options_of(options, name, entry));
}

void Optimizer::step(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings,
                     double gradient_scale) {
  const at::NoGradGuard no_graph;
  const std::vector<Parameter>& all = parameters_.all();
  if (gradients.size() != all.size() || settings.size() != all.size())
    throw Error("an optimizer was given gradients or settings of another model");
  std::vector<Tensor> dense;
  dense.reserve(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].sizes() != all[i].value.sizes())
      throw Error(fmt::format("the gradient of '{}' has another shape", all[i].name));
    dense.push_back(gradients[i].detach().contiguous());
  }
  update({dense, settings, gradient_scale});
}

void Optimizer::step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale) {
  step(gradients, std::vector<ParameterStep>(parameters_.all().size(), {.learning_rate = learning_rate}),
       gradient_scale);
}

double global_norm(const std::vector<Tensor>& gradients) {
  constexpr int64_t kChunk = 16384;
  struct Chunk {
    const Tensor* tensor;
    int64_t begin, size;
  };
  std::vector<Tensor> dense;
  for (const Tensor& gradient : gradients) dense.push_back(gradient.detach().contiguous());
  std::vector<Chunk> chunks;
  for (const Tensor& tensor : dense) {
    for (int64_t begin = 0; begin < tensor.numel(); begin += kChunk) {
      chunks.push_back({&tensor, begin, std::min(kChunk, tensor.numel() - begin)});
    }
  }
  std::vector<double> sums(chunks.size());
  parallel_ranges(static_cast<int64_t>(chunks.size()), 2, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const Chunk& chunk = chunks[i];
      ops::dispatch(*chunk.tensor, [&]<typename T>() {
        sums[i] = kernels::sum_of_squares(chunk.tensor->data_ptr<T>() + chunk.begin, chunk.size);
      });
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

double global_norm(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings) {
  std::vector<Tensor> moving;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!settings[i].frozen) moving.push_back(gradients[i]);
  }
  return global_norm(moving);
}

double clip_scale(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1.0; }

}  // namespace plumb
