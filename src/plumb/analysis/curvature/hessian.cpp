#include "plumb/analysis/curvature/hessian.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {
namespace {

int64_t count_tokens(const std::vector<Batch>& batches) {
  int64_t tokens = 0;
  for (const Batch& batch : batches) tokens += batch.target_layout.tokens();
  if (tokens == 0) throw Error("a loss needs at least one target token");
  return tokens;
}

/// Memory that this process uses, in bytes; 0 where nobody counts it.
int64_t bytes_in_use() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  // Not the resident memory, which does not grow where freed memory is used again.
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
#else
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  return statm >> total >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
#endif
}

/// sum += pieces; an undefined sum starts as a copy of them.
void accumulate(const Parameters& parameters, const std::vector<Tensor>& pieces, Tensor& sum) {
  if (!sum.defined()) {
    sum = parameters.join(pieces);
    return;
  }
  const std::vector<Tensor> views = parameters.split(sum);
  for (size_t i = 0; i < views.size(); ++i) views[i].add_(pieces[i].detach());
}

LossOptions share_of_mean(int64_t tokens, double label_smoothing, bool twice_differentiable) {
  LossOptions options;
  options.label_smoothing = label_smoothing;
  options.scale = 1.0 / static_cast<double>(tokens);
  options.twice_differentiable = twice_differentiable;
  return options;
}

}  // namespace

MeanLoss mean_loss(EncoderDecoder& model, const std::vector<Batch>& micro_batches, double label_smoothing) {
  const LossOptions options = share_of_mean(count_tokens(micro_batches), label_smoothing, false);
  const std::vector<Tensor> values = model.parameters().values();
  MeanLoss mean;
  for (const Batch& batch : micro_batches) {
    ForwardContext context(Pass::measurement);
    const Loss loss = model.loss(batch, options, context);
    mean.loss += loss.value.item<double>();
    accumulate(model.parameters(), gradients({loss.value}, values, {}), mean.gradient);
  }
  return mean;
}

HessianOperator::HessianOperator(EncoderDecoder& model, std::vector<Batch> micro_batches, const HessianOptions& options)
    : model_(model),
      parameters_(model.parameters()),
      micro_batches_(std::move(micro_batches)),
      label_smoothing_(options.label_smoothing),
      tokens_(count_tokens(micro_batches_)) {
  keep_graphs(options.graph_memory);
}

std::vector<Tensor> HessianOperator::differentiable_gradient(const Batch& batch) {
  ForwardContext context(Pass::measurement);
  const Loss loss = model_.loss(batch, share_of_mean(tokens_, label_smoothing_, true), context);
  return gradients({loss.value}, parameters_.values(), {}, /*create_graph=*/true);
}

void HessianOperator::keep_graphs(int64_t budget) {
  const int64_t begin = bytes_in_use();
  int64_t largest = 0;  // growth by one micro-batch: what the next may need as well
  for (const Batch& batch : micro_batches_) {
    const int64_t before = bytes_in_use();
    if (budget <= 0 || before - begin + largest > budget) return;
    kept_.push_back(differentiable_gradient(batch));
    const int64_t after = bytes_in_use();
    largest = std::max(largest, after - before);
    if (after - begin > budget) {
      kept_.pop_back();
      return;
    }
  }
}

Tensor HessianOperator::operator()(const Tensor& v) {
  if (v.dim() != 1 || v.numel() != size() || v.scalar_type() != parameters_.type()) {
    throw Error(fmt::format("the Hessian of {} parameters cannot multiply {} elements of type {}", size(), v.numel(),
                            at::toString(v.scalar_type())));
  }
  const std::vector<Tensor> values = parameters_.values();
  const std::vector<Tensor> pieces = parameters_.split(v);
  Tensor product;
  for (size_t i = 0; i < micro_batches_.size(); ++i) {
    const bool keep = i < kept_.size();
    const std::vector<Tensor> gradient = keep ? kept_[i] : differentiable_gradient(micro_batches_[i]);
    // A part of the gradient that is constant has no graph and adds nothing.
    std::vector<Tensor> outputs;
    std::vector<Tensor> weights;
    for (size_t k = 0; k < gradient.size(); ++k) {
      if (!gradient[k].requires_grad()) continue;
      outputs.push_back(gradient[k]);
      weights.push_back(pieces[k]);
    }
    if (outputs.empty()) continue;
    accumulate(parameters_, gradients(outputs, values, weights, /*create_graph=*/false, /*retain_graph=*/keep),
               product);
  }
  return product.defined() ? product : at::zeros_like(v);
}

}  // namespace plumb
