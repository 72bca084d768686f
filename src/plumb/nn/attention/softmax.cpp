// Softmax attention, Vaswani et al. 2017, arXiv 1706.03762:  out = softmax(Q·Kᵀ/√size)·V for each head. Positions that
// act within attention may add B to the scores: softmax(Q·Kᵀ/√size + B)·V.
#include <cmath>
#include <limits>

#include "plumb/nn/attention/attention.h"
#include "plumb/ops/attention.h"

namespace plumb {
namespace {

/// The keys and values of every position seen.
struct KeyValueCache final : AttentionState {
  ops::CachedKeys keys;

  void reorder(const std::vector<int64_t>& order) override { keys.reorder(order); }
};

class Softmax final : public Attention {
 public:
  explicit Softmax(const AttentionShape& shape)
      : heads_(shape.heads), size_(shape.size()), positions_(shape.positions) {}

  Tensor self(const Tensor& packed, const Tensor&, const Ragged& layout, bool causal,
              const ForwardContext&) const override {
    if (positions_ && positions_->biased()) return biased_self(packed, layout, causal);
    return ops::self_attention(packed, layout, shape(), causal);
  }

  AttentionMemory remember(const Tensor& key_value, const Tensor&, const Ragged& layout,
                           const ForwardContext&) const override {
    return {key_value, layout};
  }

  Tensor cross(const Tensor& query, const Ragged& layout, const AttentionMemory& memory,
               const ForwardContext&) const override {
    return ops::cross_attention(query, memory.content, layout, memory.layout, shape());
  }

  std::unique_ptr<AttentionState> start(int64_t rows) const override {
    auto cache = std::make_unique<KeyValueCache>();
    cache->keys.rows.resize(static_cast<size_t>(rows));
    return cache;
  }

  Tensor step(const Tensor& query, const Tensor& key_value, const Tensor&, AttentionState& state) const override {
    auto& cache = dynamic_cast<KeyValueCache&>(state);
    cache.keys.append(key_value, Ragged(std::vector<int64_t>(static_cast<size_t>(key_value.size(0)), 1)));
    if (positions_ && positions_->biased()) return biased_step(query, cache.keys);
    return ops::cached_attention(query, cache.keys, shape());
  }

 private:
  [[nodiscard]] ops::HeadShape shape() const { return {heads_, heads_, size_}; }

  /// (rows, heads·size) → (heads, rows, size)
  [[nodiscard]] Tensor by_head(const Tensor& x) const { return x.view({x.size(0), heads_, size_}).transpose(0, 1); }

  /// query: (heads, queries, size); key, value: (heads, keys, size) → (queries, d).
  [[nodiscard]] Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, int64_t begin,
                              bool causal) const {
    const int64_t keys = key.size(1);
    Tensor scores = at::matmul(query, key.transpose(1, 2)) / std::sqrt(static_cast<double>(size_));
    scores = scores + positions_->bias(query, key, begin);
    if (causal) {
      const Tensor hidden = at::ones({query.size(1), keys}, query.options().dtype(at::kBool)).triu(begin + 1);
      scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    }
    const Tensor mixed = at::matmul(at::softmax(scores, -1), value);
    return mixed.transpose(0, 1).reshape({query.size(1), heads_ * size_});
  }

  [[nodiscard]] Tensor biased_self(const Tensor& packed, const Ragged& layout, bool causal) const {
    std::vector<Tensor> out;
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      const std::vector<Tensor> parts = packed.narrow(0, layout.begin(s), layout.length(s)).chunk(3, 1);
      out.push_back(attend(by_head(parts[0].contiguous()), by_head(parts[1].contiguous()),
                           by_head(parts[2].contiguous()), 0, causal));
    }
    return at::cat(out, 0);
  }

  [[nodiscard]] Tensor biased_step(const Tensor& query, const ops::CachedKeys& keys) const {
    std::vector<Tensor> out;
    for (const Tensor& seen : keys.by_row()) {  // (positions, 2·d)
      const std::vector<Tensor> parts = seen.chunk(2, 1);
      const auto row = static_cast<int64_t>(out.size());
      out.push_back(attend(by_head(query.narrow(0, row, 1).contiguous()), by_head(parts[0].contiguous()),
                           by_head(parts[1].contiguous()), seen.size(0) - 1, false));
    }
    return at::cat(out, 0);
  }

  int64_t heads_;
  int64_t size_;
  std::shared_ptr<const RelativePositions> positions_;
};

const bool registered =
    attentions().add("softmax", "softmax(QKᵀ/√size)·V", "Vaswani et al. 2017, arXiv 1706.03762",
                     [](Parameters&, const AttentionShape& shape) { return std::make_unique<Softmax>(shape); });

}  // namespace
}  // namespace plumb
