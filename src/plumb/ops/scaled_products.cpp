#include "plumb/ops/scaled_products.h"

#include <vector>

#include "plumb/ops/index.h"

namespace plumb::ops {
namespace {

/// The largest rise of the peak for which one reference serves all positions: exp(kMostRise) is far from overflow in
/// float32, even summed over the features of a pair above the diagonal, and exp(−kMostRise) times the rounding unit is
/// far from underflow.
constexpr double kMostRise = 60;

/// features·exp(scale + shift)
Tensor shifted(const Tensor& features, const Tensor& scale, const Tensor& shift) {
  const Tensor factor = at::exp(scale + shift);
  return features.defined() ? features * factor : factor;
}

Tensor with_one_reference(const Scaled& query, const Scaled& key, const Tensor& peak) {
  const Tensor reference = peak.narrow(1, 0, 1);
  const Tensor q = shifted(query.features, query.scale, reference);
  return at::bmm(q, shifted(key.features, key.scale, -reference).transpose(1, 2)).tril();
}

/// One half, 0 or 1, of each block: (rows, positions, …) → (rows·positions/block, block/2, …).
Tensor half_blocks(const Tensor& x, int64_t block, int64_t which) {
  return x.defined() ? x.reshape({-1, 2, block / 2, x.size(2)}).select(1, which) : x;
}

Tensor in_squares(const Scaled& query, const Scaled& key, const Tensor& peak) {
  const int64_t size = peak.size(1);
  Tensor out = (shifted(query.features, query.scale, peak) * shifted(key.features, key.scale, -peak))
                   .sum(2)
                   .view({-1, 1, 1});  // the diagonal
  for (int64_t block = 2; block <= size; block *= 2) {
    const int64_t rows = block / 2;
    const Tensor reference = half_blocks(peak, block, 0).narrow(1, rows - 1, 1);
    const Tensor later = shifted(half_blocks(query.features, block, 1), half_blocks(query.scale, block, 1), reference);
    const Tensor earlier = shifted(half_blocks(key.features, block, 0), half_blocks(key.scale, block, 0), -reference);
    const Tensor square = at::bmm(later, earlier.transpose(1, 2));
    const Tensor pairs = out.view({-1, 2, rows, rows});
    const Tensor upper = at::cat({pairs.select(1, 0), at::zeros_like(square)}, 2);
    out = at::cat({upper, at::cat({square, pairs.select(1, 1)}, 2)}, 1);
  }
  return out;
}

}  // namespace

Tensor causal_products(const Scaled& query, const Scaled& key, const Tensor& peak) {
  const Tensor bound = peak.detach();
  if (!bound.is_cpu()) return in_squares(query, key, bound);  // reading the peaks would wait for the device
  const int64_t rows = bound.size(0);
  const Tensor rises = (bound.select(1, bound.size(1) - 1) - bound.select(1, 0)).amax(1).to(at::kCPU, at::kDouble);
  std::vector<int64_t> flat, steep;  // rows for which one reference suffices, and the others
  for (int64_t row = 0; row < rows; ++row) {
    (rises.data_ptr<double>()[row] <= kMostRise ? flat : steep).push_back(row);  // NaN counts as steep
  }
  if (steep.empty()) return with_one_reference(query, key, bound);
  if (flat.empty()) return in_squares(query, key, bound);
  const auto products = [&](const std::vector<int64_t>& chosen, const auto& compute) {
    const Tensor index = index_beside(bound, chosen);
    const auto of = [&](const Tensor& x) { return x.defined() ? x.index_select(0, index) : x; };
    return compute(Scaled{of(query.features), of(query.scale)}, Scaled{of(key.features), of(key.scale)}, of(bound));
  };
  std::vector<int64_t> places(static_cast<size_t>(rows));  // of each row in the concatenation of the two lists
  for (size_t i = 0; i < flat.size(); ++i) places[static_cast<size_t>(flat[i])] = static_cast<int64_t>(i);
  for (size_t i = 0; i < steep.size(); ++i)
    places[static_cast<size_t>(steep[i])] = static_cast<int64_t>(flat.size() + i);
  return at::cat({products(flat, with_one_reference), products(steep, in_squares)}, 0)
      .index_select(0, index_beside(bound, places));
}

}  // namespace plumb::ops
