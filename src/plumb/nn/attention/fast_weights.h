// The common part of fast-weight attention. Each head of each sequence has a matrix S (features, size). A position
// writes its value v under the features φ(k) of its key, and reads with the features φ(q) of its query:
//   sum rule    S ← S + φ(k)·vᵀ
//   delta rule  S ← S + β·φ(k)·(v − Sᵀ·φ(k))ᵀ, after S ← diag(exp(g))·S if the kind forgets
//   y = Sᵀ·φ(q), divided by zᵀ·φ(q) with z = Σ φ(k) if the kind is normalized.
// In causal attention a position reads after writing; otherwise, all positions are written before any is read.
#pragma once

#include "plumb/nn/attention/attention.h"

namespace plumb {

class FastWeights : public Attention {
 public:
  enum class Rule {
    sum,
    normalized_sum,
    exponential_sum,  // the normalized sum with features given as logarithms (ops/exponential_rule.h)
    delta
  };

  /// φ of queries or keys, or log φ for the rule `exponential_sum`, for any number of heads: (tokens, heads, size) →
  /// (tokens, heads, features).
  using FeatureMap = std::function<Tensor(const Tensor&)>;

  /// `features`: the number that φ gives a head. `map` may be empty in a class that overrides query_features and
  /// key_features. Throws Error if the shape's positions add to attention scores, which fast weights do not have.
  FastWeights(const AttentionShape& shape, Rule rule, int64_t features, FeatureMap map);

  Tensor self(const Tensor& packed, const Tensor& x, const Ragged& layout, bool causal,
              const ForwardContext& context) const override;
  AttentionMemory remember(const Tensor& key_value, const Tensor& x, const Ragged& layout,
                           const ForwardContext& context) const override;
  Tensor cross(const Tensor& query, const Ragged& layout, const AttentionMemory& memory,
               const ForwardContext& context) const override;
  std::unique_ptr<AttentionState> start(int64_t rows) const override;
  Tensor read(const Tensor& query, const Tensor& key_value, const Tensor& x, const Ragged& layout,
              AttentionState& state) const override;
  /// Each head reads features·size numbers of S, and writes as many; the delta rule first reads what it corrects.
  AttentionWork work() const override;

 protected:
  /// Multiply-adds of the matrix products in φ of one head's query or key.
  [[nodiscard]] virtual double feature_work() const { return 0; }
  /// The map, unless φ depends on the context, or differs between queries and keys.
  [[nodiscard]] virtual Tensor query_features(const Tensor& query, const ForwardContext& context) const;
  [[nodiscard]] virtual Tensor key_features(const Tensor& key, const ForwardContext& context) const;
  /// β of the delta rule, from x, the input of the key and value projections: (tokens, d) → (tokens, heads).
  [[nodiscard]] virtual Tensor write_strength(const Tensor& x) const;
  /// g ≤ 0 of the delta rule, from x: (tokens, d) → (tokens, heads, features) or (tokens, heads, 1); undefined: nothing
  /// is forgotten.
  [[nodiscard]] virtual Tensor log_decay(const Tensor& x) const;

 private:
  /// What positions write and read, by head; a key-value head is repeated for each query head of its group.
  struct Projected {
    Tensor query;  // φ(q), (tokens, heads, features)
    Tensor key;    // φ(k)
    Tensor value;  // (tokens, heads, size); for normalized_sum, with a column of ones
    Tensor beta;   // for the delta rule, (tokens, heads)
    Tensor decay;  // g; undefined without forgetting
  };
  [[nodiscard]] Projected projected(const Tensor& query, const Tensor& key_value, const Tensor& x,
                                    const ForwardContext& context) const;
  [[nodiscard]] Tensor by_head(const Tensor& x) const;
  [[nodiscard]] Tensor repeated(const Tensor& x) const;
  [[nodiscard]] Tensor result(const Tensor& read) const;
  [[nodiscard]] Tensor weights(const Projected& tokens, const Ragged& layout) const;
  [[nodiscard]] Tensor causal(const Projected& tokens, const Ragged& layout) const;
  [[nodiscard]] Tensor empty_weights(const Projected& tokens, int64_t rows) const;
  [[nodiscard]] Tensor step(const Projected& tokens, Tensor& weights) const;

  ops::HeadShape heads_;
  Rule rule_;
  int64_t features_;
  FeatureMap map_;
};

}  // namespace plumb
