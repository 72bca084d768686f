// Tables of a vocabulary whose rows are divided among processes: the embedding of tokens, the logits and their
// cross-entropy (Shoeybi et al. 2019, "Megatron-LM", arXiv 1909.08053, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/nn/layer_division.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// The rows of a vocabulary that this process has, an equal share of consecutive ones per rank; by default all of them.
/// Every rank calls each function with the same arguments, except for its rows of the tables, and gets the same result.
class VocabularyRows {
 public:
  VocabularyRows() = default;

  /// Divides the rows of these tables, (vocabulary, …), of which some may be undefined. They stay whole if the number
  /// of ranks does not divide the vocabulary.
  VocabularyRows(LayerDivision& division, const std::vector<Tensor>& tables);

  /// ops::embedding of the whole table.
  [[nodiscard]] Tensor embedding(const Tensor& table, const std::vector<int64_t>& tokens, double scale) const;

  /// hidden·Wᵀ + b for the whole vocabulary, in every rank; differentiable to any order. hidden: (tokens, width).
  [[nodiscard]] Tensor logits(const Tensor& hidden, const Tensor& weight, const Tensor& bias) const;

  /// ops::linear_cross_entropy over the whole vocabulary. No rank holds more than a chunk of its own logits: what is
  /// exchanged is three numbers per token, and the gradient of `hidden`.
  [[nodiscard]] ops::CrossEntropy cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                                const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                                double smoothing, double scale) const;

 private:
  [[nodiscard]] bool divided() const { return group_.size() > 1; }
  [[nodiscard]] bool has(int64_t token) const { return token >= first_ && token < first_ + rows_; }

  Group group_;
  int64_t vocabulary_ = 0;
  int64_t rows_ = 0;
  int64_t first_ = 0;
};

}  // namespace plumb
