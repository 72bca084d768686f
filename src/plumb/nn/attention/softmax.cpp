// Softmax attention, Vaswani et al. 2017, arXiv 1706.03762: out = softmax(Q·Kᵀ/√size)·V for each head. Position
// encodings that act within attention may add B to the scores: softmax(Q·Kᵀ/√size + B)·V.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "plumb/nn/attention/attention.h"
#include "plumb/nn/attention/row_keys.h"
#include "plumb/ops/attention.h"

namespace plumb {
namespace {

/// The keys and values of all positions seen. `Keys`: ops::CachedKeys, or RowKeys for biased scores.
template <typename Keys>
struct KeyValueCache final : AttentionState {
  explicit KeyValueCache(Keys start) : keys(std::move(start)) {}
  Keys keys;

  void reorder(const std::vector<int64_t>& order) override { keys.reorder(order); }
  [[nodiscard]] int64_t bytes() const override { return keys.bytes(); }
};

class Softmax final : public Attention {
 public:
  explicit Softmax(const AttentionShape& shape)
      : heads_(shape.heads),
        positions_(shape.positions),
        id_(LayerId::of_parameter(shape.name)),
        dropout_(shape.dropout),
        place_(shape.name + ".weights") {}

  Tensor self(const Tensor& packed, const Tensor&, const Ragged& layout, bool causal,
              const ForwardContext& context) const override {
    if (context.scores_watched()) {
      show_scores(packed.narrow(1, 0, heads_.width()), layout, packed.narrow(1, heads_.width(), heads_.kv_width()),
                  layout, causal, context);
    }
    if (biased() || drops(context)) return self_by_sequence(packed, layout, causal, context);
    return ops::self_attention(packed, layout, heads_, causal);
  }

  AttentionMemory remember(const Tensor& key_value, const Tensor&, const Ragged& layout,
                           const ForwardContext&) const override {
    return {key_value, layout};
  }

  Tensor cross(const Tensor& query, const Ragged& layout, const AttentionMemory& memory,
               const ForwardContext& context) const override {
    if (context.scores_watched())
      show_scores(query, layout, memory.content.narrow(1, 0, heads_.kv_width()), memory.layout, false, context);
    if (drops(context)) return by_sequence(query, layout, memory.content, memory.layout, false, context);
    return ops::cross_attention(query, memory.content, layout, memory.layout, heads_);
  }

  /// The score, and the weighted sum of values.
  AttentionWork work() const override { return {.per_pair = 2.0 * static_cast<double>(heads_.width())}; }

  /// Not with dropout, whose masks would be those of other heads.
  [[nodiscard]] bool divisible() const override { return dropout_ == 0; }
  void keep(const ops::HeadShape& heads) override { heads_ = heads; }

  std::unique_ptr<AttentionState> start(int64_t rows) const override {
    if (biased()) return std::make_unique<KeyValueCache<RowKeys>>(RowKeys(rows));
    ops::CachedKeys keys;
    keys.rows.resize(static_cast<size_t>(rows));
    return std::make_unique<KeyValueCache<ops::CachedKeys>>(std::move(keys));
  }

  Tensor read(const Tensor& query, const Tensor& key_value, const Tensor&, const Ragged& layout,
              AttentionState& state) const override {
    if (biased()) return biased_read(query, key_value, layout, dynamic_cast<KeyValueCache<RowKeys>&>(state).keys);
    ops::CachedKeys& keys = dynamic_cast<KeyValueCache<ops::CachedKeys>&>(state).keys;
    const bool first = keys.blocks.empty();
    keys.append(key_value, layout);
    if (first && layout.longest() > 1) {
      return ops::self_attention(at::cat({query, key_value}, 1), layout, heads_, /*causal=*/true);
    }
    return ops::cached_attention(query, layout, keys, heads_);
  }

 private:
  [[nodiscard]] bool biased() const { return positions_ && positions_->biased(); }
  [[nodiscard]] bool drops(const ForwardContext& context) const { return dropout_ > 0 && context.regularizes(); }

  /// (tokens, heads·size) → (heads, tokens, size)
  [[nodiscard]] Tensor by_head(const Tensor& x) const {
    return x.reshape({x.size(0), x.size(1) / heads_.size, heads_.size}).transpose(0, 1);
  }

  /// The same for keys or values; each head is repeated for the query heads of its group.
  [[nodiscard]] Tensor repeated(const Tensor& x) const {
    return heads_.group() == 1 ? by_head(x) : by_head(x).repeat_interleave(heads_.group(), 0);
  }

  /// One sequence. query: (queries, width), at the positions begin, begin + 1, …; key_value: (keys, 2·kv_width) →
  /// (queries, width). `dropout`: the mask of the weights, if they have one.
  [[nodiscard]] Tensor attend(const Tensor& query_in, const Tensor& key_value, int64_t begin, bool causal,
                              const std::optional<ops::DropoutKey>& dropout = {}) const {
    const Tensor key = key_value.narrow(1, 0, heads_.kv_width());
    const Tensor value = repeated(key_value.narrow(1, heads_.kv_width(), heads_.kv_width()));
    Tensor weights = at::softmax(scores(query_in, key, begin, causal), -1);  // (heads, queries, keys)
    if (dropout) weights = ops::dropout(weights.flatten(0, 1), dropout_, *dropout).view_as(weights);
    const Tensor mixed = at::matmul(weights, value);
    return mixed.transpose(0, 1).reshape({query_in.size(0), heads_.width()});
  }

  /// One sequence. query: (queries, width), at the positions begin, begin + 1, …; key: (keys, kv_width) → (heads,
  /// queries, keys), the argument of the softmax.
  [[nodiscard]] Tensor scores(const Tensor& query_in, const Tensor& key_in, int64_t begin, bool causal) const {
    const Tensor query = by_head(query_in);
    const Tensor key = repeated(key_in);
    Tensor scores = at::matmul(query, key.transpose(1, 2)) / std::sqrt(static_cast<double>(heads_.size));
    if (biased()) scores = scores + positions_->bias(query, key, begin);
    if (!causal) return scores;
    const Tensor hidden = at::ones({query.size(1), key.size(1)}, query.options().dtype(at::kBool)).triu(begin + 1);
    return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }

  /// Shows the scores of each sequence. query: (query tokens, width); key: (key tokens, kv_width).
  void show_scores(const Tensor& query, const Ragged& layout, const Tensor& key, const Ragged& key_layout, bool causal,
                   const ForwardContext& context) const {
    if (!id_) return;
    const at::NoGradGuard no_graph;
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      context.show_scores(*id_, scores(query.narrow(0, layout.begin(s), layout.length(s)),
                                       key.narrow(0, key_layout.begin(s), key_layout.length(s)), 0, causal));
    }
  }

  [[nodiscard]] Tensor self_by_sequence(const Tensor& packed, const Ragged& layout, bool causal,
                                        const ForwardContext& context) const {
    const Tensor query = packed.narrow(1, 0, heads_.width());
    const Tensor key_value = packed.narrow(1, heads_.width(), 2 * heads_.kv_width());
    if (causal && biased() && !drops(context)) {
      if (Tensor whole = positions_->causal_attention(query, key_value, layout, heads_); whole.defined()) return whole;
    }
    return by_sequence(query, layout, key_value, layout, causal, context);
  }

  /// Sequence i of `layout` attends to sequence i of `key_layout`. query: (query tokens, width); key_value: (key
  /// tokens, 2·kv_width) → (query tokens, width).
  [[nodiscard]] Tensor by_sequence(const Tensor& query, const Ragged& layout, const Tensor& key_value,
                                   const Ragged& key_layout, bool causal, const ForwardContext& context) const {
    std::vector<Tensor> out;
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      std::optional<ops::DropoutKey> dropout;
      if (drops(context)) dropout = context.mask_key_at(place_, layout.origin(s));
      out.push_back(attend(query.narrow(0, layout.begin(s), layout.length(s)),
                           key_value.narrow(0, key_layout.begin(s), key_layout.length(s)), 0, causal, dropout));
    }
    return at::cat(out, 0);
  }

  [[nodiscard]] Tensor biased_read(const Tensor& query, const Tensor& key_value, const Ragged& layout,
                                   RowKeys& keys) const {
    keys.append(key_value, layout);
    std::vector<Tensor> out;
    for (int64_t row = 0; row < layout.sequences(); ++row) {
      const int64_t count = layout.length(row);
      if (count == 0) continue;
      const Tensor seen = keys.row(row);  // (positions, 2·kv_width)
      out.push_back(attend(query.narrow(0, layout.begin(row), count), seen, seen.size(0) - count, count > 1));
    }
    return at::cat(out, 0);
  }

  ops::HeadShape heads_;
  std::shared_ptr<const RelativePositions> positions_;
  std::optional<LayerId> id_;  // from its name
  double dropout_;
  std::string place_;  // of its masks
};

const bool kSoftmaxRegistered = attentions().add(
    "softmax", "softmax(QKᵀ/√size)·V", "Vaswani et al. 2017, arXiv 1706.03762",
    [](Parameters&, const AttentionShape& shape, const Options&) { return std::make_unique<Softmax>(shape); });

}  // namespace
}  // namespace plumb
