#include "plumb/model/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/ops/embedding.h"

namespace plumb {
namespace {

/// The position encoding of one side of a model; `prefix` names its parameters.
std::unique_ptr<Positions> positions_of(const ModelConfig& config, Parameters& parameters, const std::string& prefix,
                                        bool causal) {
  return make_positions(config.positions, parameters, prefix,
                        {config.d_model, config.heads, config.max_positions, causal, config.head_size, config.options});
}

}  // namespace

TokenEmbedding::TokenEmbedding(Parameters& parameters, const ModelConfig& config, const Shape& shape, Tensor table)
    : table_(std::move(table)),
      factor_(config.embedding_factor > 0 ? config.embedding_factor : std::sqrt(static_cast<double>(config.d_model))),
      positions_(positions_of(config, parameters, shape.side + "_position", shape.causal)) {
  if (shape.segments > 0) {
    segments_ = parameters.add(shape.side + "_segment.weight", {shape.segments, config.d_model}, Role::position);
  }
  if (config.embedding_norm)
    norm_ = norms().at(config.norm).make(parameters, shape.side + "_embed_norm", config.d_model, config.norm_eps);
}

Tensor TokenEmbedding::operator()(const std::vector<int64_t>& tokens, const std::vector<int64_t>& positions,
                                  const std::vector<int64_t>& segments, ForwardContext& context) const {
  Tensor sum = rows_.embedding(table_, tokens, factor_);
  const int64_t length = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end()) + 1;
  const Tensor of_positions = positions_->table(length);
  if (of_positions.defined()) sum = sum + ops::embedding(of_positions, positions, 1.0);
  if (segments_.defined()) {
    const bool told_apart = segments_.size(0) > 1 && !segments.empty();
    sum = sum + ops::embedding(segments_, told_apart ? segments : std::vector<int64_t>(tokens.size(), 0), 1.0);
  }
  if (norm_) sum = (*norm_)(sum, context);
  return context.dropout(sum);
}

int64_t longest_sequence(const ModelConfig& config) {
  if (kind_of(config).recurrent) return std::numeric_limits<int64_t>::max();
  Parameters shapes(at::kFloat, at::kMeta);
  return positions_of(config, shapes, "position", /*causal=*/true)->longest();
}

std::vector<int64_t> positions_after(const std::vector<int64_t>& so_far, const Ragged& layout) {
  if (layout.sequences() != static_cast<int64_t>(so_far.size())) {
    throw Error(fmt::format("tokens of {} sequences for {} rows", layout.sequences(), so_far.size()));
  }
  std::vector<int64_t> positions = layout.positions();
  for (int64_t r = 0; r < layout.sequences(); ++r) {
    for (int64_t t = layout.begin(r); t < layout.begin(r + 1); ++t)
      positions[static_cast<size_t>(t)] += so_far[static_cast<size_t>(r)];
  }
  return positions;
}

}  // namespace plumb
