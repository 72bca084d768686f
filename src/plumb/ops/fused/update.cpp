#include <algorithm>
#include <array>
#include <cmath>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/implementations.h"
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

/// Part of a tensor. The division into chunks, and so a sum over them, does not depend on the number of threads.
struct Chunk {
  size_t tensor;
  int64_t begin, size;
};
std::vector<Chunk> chunks_of(const std::vector<Tensor>& tensors) {
  constexpr int64_t kChunk = 16384;
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (int64_t begin = 0; begin < tensors[i].numel(); begin += kChunk)
      chunks.push_back({i, begin, std::min(kChunk, tensors[i].numel() - begin)});
  }
  return chunks;
}

/// Calls work(chunk, its number) in parallel, backward in each thread's part if so wanted.
template <typename Work>
void for_each_chunk(const std::vector<Chunk>& chunks, bool backward, const Work& work) {
  parallel_ranges(std::ssize(chunks), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto c = static_cast<size_t>(backward ? begin + end - 1 - i : i);
      work(chunks[c], c);
    }
  });
}

}  // namespace

template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces) {
  if (updates.empty()) return;
  const std::vector<Tensor> dense = contiguous(gradients);
  dispatch(dense[0], [&]<typename T>() {
    for_each_range(dense, [&](size_t i, int64_t begin, int64_t n) {
      std::array<T*, Update::kVectors> vectors;
      for (size_t k = 0; k < vectors.size(); ++k) vectors[k] = pieces[k][i].template data_ptr<T>() + begin;
      kernels::optimizer<T>().update(updates[i], dense[i].template data_ptr<T>() + begin, vectors, n);
    });
  });
}

PLUMB_FOR_EACH_UPDATE(PLUMB_INSTANTIATE_UPDATE)

template <>
void update(const std::vector<LambUpdate>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<3>& pieces) {
  if (updates.empty()) return;
  const std::vector<Tensor> dense = contiguous(gradients);
  const std::vector<Chunk> chunks = chunks_of(dense);
  std::vector<kernels::LambSquares> squares(chunks.size()), sums(updates.size());
  dispatch(dense[0], [&]<typename T>() {
    const auto at = [](const std::vector<Tensor>& tensors, const Chunk& chunk) {
      return tensors[chunk.tensor].data_ptr<T>() + chunk.begin;
    };
    const auto& [m, v, w] = pieces;
    for_each_chunk(chunks, false, [&](const Chunk& chunk, size_t c) {
      squares[c] = kernels::optimizer<T>().lamb_moments(updates[chunk.tensor], at(dense, chunk), at(m, chunk),
                                                        at(v, chunk), at(w, chunk), chunk.size);
    });
    for (size_t c = 0; c < chunks.size(); ++c) {
      kernels::LambSquares& sum = sums[chunks[c].tensor];
      sum = {sum.w + squares[c].w, sum.u + squares[c].u};
    }
    // Backward, to begin with what the cache still holds
    for_each_chunk(chunks, true, [&](const Chunk& chunk, size_t) {
      const LambUpdate& u = updates[chunk.tensor];
      const kernels::LambSquares& sum = sums[chunk.tensor];
      const bool scaled = u.adapts && sum.w != 0 && sum.u != 0;  // NaN is not 0
      const kernels::LambStep step{.step = u.step,
                                   .root_scale = u.root_scale,
                                   .eps = u.eps,
                                   .decay = u.decay,
                                   .rate = u.rate * (scaled ? std::sqrt(sum.w / sum.u) : 1)};
      kernels::optimizer<T>().update(step, at(m, chunk), {at(v, chunk), at(w, chunk)}, chunk.size);
    });
  });
}

DeviceScalar sum_of_squares(const std::vector<Tensor>& tensors) {
  const std::vector<Tensor> dense = contiguous(tensors);
  const std::vector<Chunk> chunks = chunks_of(dense);
  std::vector<double> sums(chunks.size());
  for_each_chunk(chunks, false, [&](const Chunk& chunk, size_t c) {
    const Tensor& tensor = dense[chunk.tensor];
    dispatch(tensor, [&]<typename T>() {
      sums[c] = kernels::optimizer<T>().sum_of_squares(tensor.data_ptr<T>() + chunk.begin, chunk.size);
    });
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace plumb::ops::fused
