#include "plumb/ops/implementations.h"
#include "plumb/ops/index.h"

namespace plumb::ops::reference {
namespace {

/// The index of each of `rows` rows in the whole matrix, (rows).
std::vector<int64_t> places(const std::vector<RowRun>& runs, int64_t rows) {
  std::vector<int64_t> index;
  index.reserve(static_cast<size_t>(rows));
  for (size_t r = 0; r < runs.size(); ++r) {
    const int64_t end = r + 1 < runs.size() ? runs[r + 1].begin : rows;
    for (int64_t row = runs[r].begin; row < end; ++row) index.push_back(runs[r].origin + row - runs[r].begin);
  }
  return index;
}

/// The mask of dropped elements: 16 bits per position, eight positions per counter.
Tensor dropped(const Tensor& x, int64_t keep_below, const DropoutKey& key) {
  const at::NoGradGuard no_graph;
  const bool aligned = key.runs.empty() || x.numel() == 0 || x.numel() / x.size(0) % 8 == 0;
  if (aligned) {
    const Tensor words = philox_words(key.seed, key.stream, dropout_counters(x, key));
    const Tensor bits = at::stack({words.bitwise_and(0xFFFF), words.bitwise_right_shift(16)}, 2);
    return (bits.flatten().narrow(0, 0, x.numel()) >= keep_below).view(x.sizes());
  }
  // Rows may begin at any of the eight positions of a counter, so each element has its own.
  const int64_t width = x.numel() / x.size(0);
  const Tensor rows = index_beside(x, places(key.runs, x.size(0))).unsqueeze(1);
  const Tensor positions = (rows * width + at::arange(width, x.options().dtype(at::kLong))).flatten();
  const Tensor words = philox_words(key.seed, key.stream, positions.bitwise_right_shift(3));
  const Tensor word = words.gather(1, positions.bitwise_right_shift(1).bitwise_and_(3).unsqueeze(1)).squeeze(1);
  const Tensor high = positions.bitwise_and(1).to(at::kBool);
  const Tensor bits = at::where(high, word.bitwise_right_shift(16), word.bitwise_and(0xFFFF));
  return (bits >= keep_below).view(x.sizes());
}

}  // namespace

Tensor dropout_counters(const Tensor& x, const DropoutKey& key) {
  const auto integers = x.options().dtype(at::kLong);
  if (key.runs.empty() || x.numel() == 0) return at::arange((x.numel() + 7) / 8, integers);
  const int64_t width = x.numel() / x.size(0);
  const Tensor rows = index_beside(x, places(key.runs, x.size(0))).unsqueeze(1);
  return (rows * (width / 8) + at::arange(width / 8, integers)).flatten();
}

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  const KeptShare share = kept_share(p);
  const Tensor kept = (share.scale * x).masked_fill(dropped(x, share.below, key), 0);
  return residual.defined() ? residual + kept : kept;
}

}  // namespace plumb::ops::reference
