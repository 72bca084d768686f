#include <algorithm>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/kernels/optimizer.h"

namespace plumb::ops::fused {
namespace {

/// Calls work(piece, begin, n) in parallel for ranges of elements that cover all pieces exactly once.
template <typename Work>
void for_each_range(const std::vector<Tensor>& pieces, const Work& work) {
  std::vector<int64_t> begins{0};
  for (const Tensor& piece : pieces) begins.push_back(begins.back() + piece.numel());
  constexpr int64_t kGrain = 16384;
  parallel_ranges(begins.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1);
    for (; begin < end; ++i) {
      const int64_t n = std::min(end, begins[i + 1]) - begin;
      if (n > 0) work(i, begin - begins[i], n);
      begin += n;
    }
  });
}

std::vector<Tensor> contiguous(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> dense;
  for (const Tensor& tensor : tensors) dense.push_back(tensor.detach().contiguous());
  return dense;
}

}  // namespace

void adam_update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
                 const std::vector<Tensor>& m, const std::vector<Tensor>& v, const std::vector<Tensor>& parameters) {
  if (parameters.empty()) return;
  const std::vector<Tensor> dense = contiguous(gradients);
  dispatch(parameters[0], [&]<typename T>() {
    for_each_range(parameters, [&](size_t i, int64_t begin, int64_t n) {
      const AdamUpdate& update = updates[i];
      const kernels::AdamStep step{.beta1 = update.beta1,
                                   .beta2 = update.beta2,
                                   .eps = update.eps,
                                   .step = update.step,
                                   .root_scale = update.root_scale,
                                   .decay = update.decay,
                                   .gradient_scale = update.gradient_scale};
      kernels::adam<T>(step, dense[i].data_ptr<T>(), m[i].data_ptr<T>(), v[i].data_ptr<T>(),
                       parameters[i].data_ptr<T>(), begin, begin + n);
    });
  });
}

void sgd_update(const std::vector<SgdUpdate>& updates, const std::vector<Tensor>& gradients,
                const std::vector<Tensor>& momentum, const std::vector<Tensor>& parameters) {
  if (parameters.empty()) return;
  const std::vector<Tensor> dense = contiguous(gradients);
  dispatch(parameters[0], [&]<typename T>() {
    for_each_range(parameters, [&](size_t i, int64_t begin, int64_t n) {
      const SgdUpdate& update = updates[i];
      const kernels::SgdStep step{.rate = update.rate,
                                  .momentum = update.momentum,
                                  .decay = update.decay,
                                  .gradient_scale = update.gradient_scale,
                                  .nesterov = update.nesterov};
      kernels::sgd<T>(step, dense[i].data_ptr<T>() + begin, momentum[i].data_ptr<T>() + begin,
                      parameters[i].data_ptr<T>() + begin, n);
    });
  });
}

double sum_of_squares(const std::vector<Tensor>& tensors) {
  struct Chunk {
    size_t tensor;
    int64_t begin, size;
  };
  constexpr int64_t kChunk = 16384;
  const std::vector<Tensor> dense = contiguous(tensors);
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < dense.size(); ++i) {
    for (int64_t begin = 0; begin < dense[i].numel(); begin += kChunk) {
      chunks.push_back({i, begin, std::min(kChunk, dense[i].numel() - begin)});
    }
  }
  std::vector<double> sums(chunks.size());
  parallel_ranges(static_cast<int64_t>(chunks.size()), 2, [&](int64_t begin, int64_t end) {
    for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
      const Tensor& tensor = dense[chunks[c].tensor];
      dispatch(tensor, [&]<typename T>() {
        sums[c] = kernels::sum_of_squares<T>(tensor.data_ptr<T>() + chunks[c].begin, chunks[c].size);
      });
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace plumb::ops::fused
