// Attention over projected queries, keys and values: the interface of its kinds, for whole ragged sequences and for
// incremental decoding, and their registry. Their common parts (projections, heads, rotation) are in multi_head.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/options.h"
#include "plumb/base/ragged.h"
#include "plumb/base/registry.h"
#include "plumb/nn/context.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/position/relative.h"
#include "plumb/ops/attention.h"

namespace plumb {

/// Describes the attention to build.
struct AttentionShape {
  std::string name;  // "encoder.layers.0.self_attn": prefix of its parameters and name of its random stream
  int64_t d_model = 0;
  ops::HeadShape heads;
  VariantOptions options;                              // of all kinds, by name
  std::shared_ptr<const RelativePositions> positions;  // for self-attention; may be null
  double dropout = 0;                                  // of the weights, in training; of `softmax` only
};

/// The state of incremental self-attention, one row per hypothesis.
class AttentionState {
 public:
  virtual ~AttentionState() = default;
  /// Row i becomes the former row order[i]: beam search keeps some hypotheses and drops others.
  virtual void reorder(const std::vector<int64_t>& order) = 0;
  /// The memory occupied.
  [[nodiscard]] virtual int64_t bytes() const = 0;
};

/// The sequences that cross-attention attends to, prepared by `remember`.
struct AttentionMemory {
  Tensor
      content;  // softmax: keys and values, (tokens, 2·kv_width); fast weights: their matrices, (sequences, heads, …)
  Ragged layout;
};

/// Multiply-adds of the matrix products of an attention, of all its heads, without those of the projections.
struct AttentionWork {
  double per_pair = 0;  // of a query and a key that it sees
  double per_query = 0;
  double per_key = 0;
};

/// How projected queries attend to projected keys and values. Head h of `heads` uses columns [h·size, (h + 1)·size) of
/// the query; head h of `kv_heads` uses those of key and value, and a group of query heads shares a key-value head.
class Attention {
 public:
  virtual ~Attention() = default;

  /// Each sequence attends to itself. packed: (tokens, width + 2·kv_width), query, key and value side by side; x:
  /// (tokens, d_model), the input they were projected from → (tokens, width). If `causal`, a position sees only itself
  /// and earlier positions.
  [[nodiscard]] virtual Tensor self(const Tensor& packed, const Tensor& x, const Ragged& layout, bool causal,
                                    const ForwardContext& context) const = 0;

  /// Prepares sequences to attend to. key_value: (tokens, 2·kv_width), projected from x: (tokens, d_model).
  [[nodiscard]] virtual AttentionMemory remember(const Tensor& key_value, const Tensor& x, const Ragged& layout,
                                                 const ForwardContext& context) const = 0;

  /// Sequence i of `layout` attends to sequence i of the memory. query: (tokens, width) → (tokens, width).
  [[nodiscard]] virtual Tensor cross(const Tensor& query, const Ragged& layout, const AttentionMemory& memory,
                                     const ForwardContext& context) const = 0;

  /// The state of `rows` rows before the first position.
  [[nodiscard]] virtual std::unique_ptr<AttentionState> start(int64_t rows) const = 0;

  /// Reads further positions of each row: those of sequence r of `layout` follow the positions that row r has seen.
  /// Call it without a graph (at::NoGradGuard). query: (tokens, width); key_value: (tokens, 2·kv_width); x: (tokens,
  /// d_model) → (tokens, width). Equals the last positions of `self` with `causal`, however the sequence is split.
  [[nodiscard]] virtual Tensor read(const Tensor& query, const Tensor& key_value, const Tensor& x, const Ragged& layout,
                                    AttentionState& state) const = 0;

  [[nodiscard]] virtual AttentionWork work() const = 0;

  /// Whether some of the heads can be computed without the others; then `keep` leaves this many.
  [[nodiscard]] virtual bool divisible() const { return false; }
  virtual void keep(const ops::HeadShape& /*heads*/) {}
};

/// Makes an attention with its own options, which have been checked.
using AttentionFactory = std::function<std::unique_ptr<Attention>(Parameters&, const AttentionShape&, const Options&)>;
Registry<AttentionFactory>& attentions();

/// The attention of this name. Throws Error on an unknown name, or options out of range.
std::unique_ptr<Attention> make_attention(const std::string& name, Parameters& parameters, const AttentionShape& shape);

}  // namespace plumb
