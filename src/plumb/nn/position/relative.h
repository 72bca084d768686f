// Positions that act within self-attention: by turning queries and keys, or by adding to the scores of softmax
// attention.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb {

class RelativePositions {
 public:
  virtual ~RelativePositions() = default;

  /// Queries or keys as attention reads them. x: (tokens, d), heads side by side; positions: (tokens), that of each
  /// token within its sequence → (tokens, d).
  [[nodiscard]] virtual Tensor turn(const Tensor& x, const std::vector<int64_t>& positions) const {
    (void)positions;
    return x;
  }

  /// Whether `bias` adds something.
  [[nodiscard]] virtual bool biased() const { return false; }

  /// What is added to the scores q·kᵀ/√size of one sequence. query: (heads, queries, size), at the positions begin,
  /// begin + 1, …; key: (heads, keys, size), at 0, 1, … → (heads, queries, keys) or a shape that broadcasts to it.
  [[nodiscard]] virtual Tensor bias(const Tensor& query, const Tensor& key, int64_t begin) const {
    (void)key;
    (void)begin;
    return at::zeros({1, 1, 1}, query.options());
  }
};

}  // namespace plumb
