// Token embeddings with positions:  √d · E[token] + P[position], then dropout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/nn/context.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/position/position.h"

namespace plumb {

/// One side's embedding; what it adds of the positions is nothing where they act within attention.
class TokenEmbedding {
 public:
  /// table: (vocabulary, d_model).
  TokenEmbedding(Tensor table, std::unique_ptr<Positions> positions);

  /// → (tokens, d_model).
  [[nodiscard]] Tensor operator()(const std::vector<int64_t>& ids, const Ragged& layout, ForwardContext& context) const;

  /// One token a row, all at the same position, without dropout → (rows, d_model).
  [[nodiscard]] Tensor at(const std::vector<int64_t>& ids, int64_t position) const;

  [[nodiscard]] const Tensor& table() const { return table_; }
  [[nodiscard]] Positions& positions() const { return *positions_; }

 private:
  Tensor table_;
  std::unique_ptr<Positions> positions_;
};

}  // namespace plumb
