// Position encodings that act within self-attention, by rotating queries and keys or by adding to the scores of softmax
// attention.
#pragma once

#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/nn/layer_division.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// The rotation angles of tokens, as cosine and sine: (tokens, 1, pairs of features); undefined if nothing is rotated.
struct Angles {
  Tensor cosine;
  Tensor sine;
};

class RelativePositions {
 public:
  virtual ~RelativePositions() = default;

  /// Whether `rotated` has an effect.
  [[nodiscard]] virtual bool rotates() const { return false; }

  /// The rotations for tokens at these positions in their sequences, in the type and on the device of `options`; the
  /// same for all layers.
  [[nodiscard]] virtual Angles angles_at(const std::vector<int64_t>& /*positions*/,
                                         const at::TensorOptions& /*options*/) const {
    return {};
  }

  /// Rotated queries or keys. x: (tokens, heads·size), any number of heads side by side → the same shape.
  [[nodiscard]] virtual Tensor rotated(const Tensor& x, const Angles& /*angles*/) const { return x; }

  /// Whether `bias` adds anything.
  [[nodiscard]] virtual bool biased() const { return false; }

  /// The term added to the scores q·kᵀ/√size of one sequence. query: (heads, queries, size), at the positions begin,
  /// begin + 1, …; key: (heads, keys, size), at 0, 1, … → (heads, queries, keys) or a shape that broadcasts to it.
  [[nodiscard]] virtual Tensor bias(const Tensor& query, const Tensor& /*key*/, int64_t /*begin*/) const {
    return at::zeros({1, 1, 1}, query.options());
  }

  /// Causal softmax attention with biased scores, by a fused operation; undefined if there is none. query: (tokens,
  /// width); key_value: (tokens, 2·kv_width) → (tokens, width).
  [[nodiscard]] virtual Tensor causal_attention(const Tensor& /*query*/, const Tensor& /*key_value*/,
                                                const Ragged& /*layout*/, const ops::HeadShape& /*heads*/) const {
    return {};
  }

  /// Whether some of the heads can be computed without the others; then `divide` says how its parameters are divided,
  /// and only this rank's heads are computed from then on. Each of the layers that share it calls that.
  [[nodiscard]] virtual bool divisible() const { return !biased(); }
  virtual void divide(LayerDivision& /*division*/) {}
};

}  // namespace plumb
