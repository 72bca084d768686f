#include "plumb/model/embedding.h"

#include <cmath>

#include "plumb/ops/embedding.h"

namespace plumb {

TokenEmbedding::TokenEmbedding(Tensor table, std::unique_ptr<Positions> positions)
    : table_(std::move(table)), positions_(std::move(positions)) {}

Tensor TokenEmbedding::operator()(const std::vector<int64_t>& ids, const Ragged& layout,
                                  ForwardContext& context) const {
  const Tensor tokens = ops::embedding(table_, ids, std::sqrt(static_cast<double>(table_.size(1))));
  const Tensor positions = positions_->table(layout.longest());
  return context.dropout(positions.defined() ? tokens + ops::embedding(positions, layout.positions(), 1.0) : tokens);
}

Tensor TokenEmbedding::at(const std::vector<int64_t>& ids, int64_t position) const {
  const Tensor tokens = ops::embedding(table_, ids, std::sqrt(static_cast<double>(table_.size(1))));
  const Tensor positions = positions_->table(position + 1);
  return positions.defined() ? tokens + positions.narrow(0, position, 1) : tokens;
}

}  // namespace plumb
