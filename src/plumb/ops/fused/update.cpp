#include <algorithm>
#include <array>
#include <cmath>

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

/// One matrix or vector. The second pass goes backward, so that it begins with what the cache still holds.
template <typename T>
void lamb_piece(const LambUpdate& u, const T* gradient, T* m, T* v, T* w, int64_t n) {
  constexpr int64_t kChunk = 16384;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<kernels::LambSquares> squares(static_cast<size_t>(chunks));
  parallel_ranges(chunks, 1, [&](int64_t first, int64_t end) {
    for (int64_t c = first; c < end; ++c) {
      const int64_t at = c * kChunk;
      squares[static_cast<size_t>(c)] =
          kernels::lamb_moments<T>(u, gradient + at, m + at, v + at, w + at, std::min(kChunk, n - at));
    }
  });
  kernels::LambSquares sum;  // in an order independent of the number of threads
  for (const kernels::LambSquares& each : squares) sum = {sum.w + each.w, sum.u + each.u};
  const bool scaled = u.adapts && sum.w != 0 && sum.u != 0;  // NaN is not 0
  const kernels::LambStep step{.step = u.step,
                               .root_scale = u.root_scale,
                               .eps = u.eps,
                               .decay = u.decay,
                               .rate = u.rate * (scaled ? std::sqrt(sum.w / sum.u) : 1)};
  parallel_ranges(chunks, 1, [&](int64_t first, int64_t end) {
    for (int64_t c = end - 1; c >= first; --c) {
      const int64_t at = c * kChunk;
      kernels::update<kernels::LambStep, T>(step, m + at, {v + at, w + at}, std::min(kChunk, n - at));
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
      kernels::update<Update, T>(updates[i], dense[i].template data_ptr<T>() + begin, vectors, n);
    });
  });
}

template void update(const std::vector<AdamUpdate>&, const std::vector<Tensor>&, const UpdatedPieces<3>&);
template void update(const std::vector<SgdUpdate>&, const std::vector<Tensor>&, const UpdatedPieces<2>&);
template void update(const std::vector<AveragedUpdate>&, const std::vector<Tensor>&, const UpdatedPieces<2>&);
template void update(const std::vector<LionUpdate>&, const std::vector<Tensor>&, const UpdatedPieces<2>&);
template void update(const std::vector<ScheduleFreeUpdate>&, const std::vector<Tensor>&, const UpdatedPieces<4>&);

template <>
void update(const std::vector<LambUpdate>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<3>& pieces) {
  const std::vector<Tensor> dense = contiguous(gradients);
  for (size_t i = 0; i < updates.size(); ++i) {
    dispatch(dense[i], [&]<typename T>() {
      lamb_piece<T>(updates[i], dense[i].data_ptr<T>(), pieces[0][i].data_ptr<T>(), pieces[1][i].data_ptr<T>(),
                    pieces[2][i].data_ptr<T>(), dense[i].numel());
    });
  }
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
