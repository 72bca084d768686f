// The input of a stack: embeddings of tokens, with positions and segments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/model/config.h"
#include "plumb/nn/context.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/vocabulary_rows.h"

namespace plumb {

/// The embedding of one side of a model: factor·E[token] + P[position] + S[segment], then a norm if
/// model.embedding_norm is set (BERT, Devlin et al. 2019, arXiv 1810.04805), then dropout. Position encodings that act
/// within attention add nothing here.
class TokenEmbedding {
 public:
  struct Shape {
    std::string side;     // "src" or "tgt": prefix of its parameters' names
    bool causal = false;  // whether the stack is causal
    int64_t segments = 0;
  };
  /// table: (vocabulary, d_model).
  TokenEmbedding(Parameters& parameters, const ModelConfig& config, const Shape& shape, Tensor table);

  /// Embeds tokens at these positions of their sequences → (tokens, d_model). segments: one per token, or empty for all
  /// 0; ignored with fewer than two segment embeddings.
  [[nodiscard]] Tensor operator()(const std::vector<int64_t>& tokens, const std::vector<int64_t>& positions,
                                  const std::vector<int64_t>& segments, ForwardContext& context) const;

  /// Divides the rows of the table (nn/vocabulary_rows.h).
  void divide(LayerDivision& division) { rows_ = VocabularyRows(division, {table_}); }

  [[nodiscard]] Positions& positions() const { return *positions_; }

 private:
  Tensor table_;
  VocabularyRows rows_;  // of the table
  double factor_;
  std::unique_ptr<Positions> positions_;
  Tensor segments_;             // (segments, d_model), or undefined
  std::unique_ptr<Norm> norm_;  // or null
};

/// The most tokens of a sequence that a model of this configuration reads; the largest int64_t if there is no limit.
int64_t longest_sequence(const ModelConfig& config);

/// Positions, (tokens), of the next tokens of rows: those of sequence r of `layout` follow the first so_far[r] tokens
/// of row r. Throws Error unless there is one sequence per row.
std::vector<int64_t> positions_after(const std::vector<int64_t>& so_far, const Ragged& layout);

}  // namespace plumb
