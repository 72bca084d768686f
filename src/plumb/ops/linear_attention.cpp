#include "plumb/ops/linear_attention.h"

#include <bit>

#include "plumb/ops/blocks.h"
#include "plumb/ops/index.h"
#include "plumb/ops/scaled_products.h"

namespace plumb::ops {
namespace {

/// Σ over the blocks that precede each one in its sequence. by_block: (blocks, …) → the same shape.
Tensor sums_before(const Tensor& by_block, const Blocks& blocks) {
  const auto& active = blocks.sequences_at();
  if (active.size() == 1) return at::zeros_like(by_block);
  if (active.front() == active.back()) {  // all sequences have the same number of blocks
    std::vector<int64_t> shape(by_block.sizes().begin() + 1, by_block.sizes().end());
    shape.insert(shape.begin(), {static_cast<int64_t>(active.size()), active.front()});
    const Tensor grid = by_block.view(shape);
    const int64_t last = grid.size(0) - 1;
    return at::cat({at::zeros_like(grid.narrow(0, 0, 1)), grid.narrow(0, 0, last).cumsum(0)}, 0).view(by_block.sizes());
  }
  std::vector<Tensor> sums;
  Tensor sum = at::zeros_like(by_block.narrow(0, 0, active.front()));
  for (const Tensor& added : blocks.by_number(by_block, 1)) {
    sum = sum.narrow(0, 0, added.size(0));
    sums.push_back(sum);
    sum = sum + added;
  }
  return at::cat(sums, 0);
}

/// Σ over the blocks of each sequence, in the order of the layout. by_block: (blocks, …) → (sequences, …).
Tensor sums_of_sequences(const Tensor& by_block, const Blocks& blocks) {
  const auto& active = blocks.sequences_at();
  std::vector<int64_t> ranks;  // of each block's sequence
  for (const int64_t sequences : active) {
    for (int64_t rank = 0; rank < sequences; ++rank) ranks.push_back(rank);
  }
  std::vector<int64_t> shape(by_block.sizes().begin(), by_block.sizes().end());
  shape[0] = blocks.sequences();
  const Tensor sums = at::zeros(shape, by_block.options());
  return blocks.unsorted(sums.index_add(0, index_beside(by_block, ranks), by_block));
}

/// (rows·heads, …) ↔ (rows, heads, …)
Tensor split_heads(const Tensor& x, int64_t heads) { return x.view({x.size(0) / heads, heads, x.size(1), x.size(2)}); }
Tensor merge_heads(const Tensor& x) { return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3)}); }

/// The factors of the delta rule's blocks that do not depend on S. G is the cumulative sum of the log decays in the
/// block; without decay, G = 0 is not stored, and `cumulative` and `kept` are undefined.
struct DeltaBlocks {
  Tensor key;         // K, (blocks·heads, C, features)
  Tensor cumulative;  // G, (blocks·heads, C, features or 1)
  Tensor written;     // exp(G_C − G)·K: the keys, decayed to the end of the block
  Tensor kept;        // exp(G_C)ᵀ, (blocks·heads, features or 1, 1): the decay of S over the block
  Tensor own;         // (I + N)⁻¹·diag(β)·V, (blocks·heads, C, size)
  Tensor erased;      // (I + N)⁻¹·diag(β)·exp(G)·K, (blocks·heads, C, features)

  /// x·exp(G), to be multiplied by S from the start of the block.
  [[nodiscard]] Tensor at_start(const Tensor& x) const { return cumulative.defined() ? x * at::exp(cumulative) : x; }

  /// Σ_i x_ti·exp(G_ti − G_ji)·k_ji for j ≤ t, 0 for j > t.
  [[nodiscard]] Tensor products(const Tensor& x) const {
    if (!cumulative.defined()) return at::bmm(x, key.transpose(1, 2)).tril();
    return causal_products({x, cumulative}, {key, -cumulative}, -cumulative);
  }
};

DeltaBlocks delta_blocks(const Tensor& key, const Tensor& value, const Tensor& beta, const Tensor& log_decay,
                         const Blocks& blocks) {
  DeltaBlocks factors;
  factors.key = factors.written = blocks.cut(key);
  const Tensor& k = factors.key;
  if (log_decay.defined()) {
    factors.cumulative = blocks.cut(log_decay).cumsum(1);
    const Tensor end = factors.cumulative.narrow(1, blocks.size() - 1, 1);
    factors.written = k * at::exp(end - factors.cumulative);
    factors.kept = at::exp(end).transpose(1, 2);
  }
  const Tensor v = blocks.cut(value);
  const Tensor b = blocks.cut(beta.unsqueeze(2));  // (blocks·heads, C, 1); 0 in padding
  const Tensor system = (b * factors.products(k)).tril(-1);
  const Tensor solved = at::linalg_solve_triangular(system + at::eye(k.size(1), k.options()),
                                                    at::cat({b * factors.at_start(k), b * v}, 2),
                                                    /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  const int64_t features = k.size(2);
  factors.own = solved.narrow(2, features, v.size(2));
  factors.erased = solved.narrow(2, 0, features);
  return factors;
}

/// Runs through the block numbers, calling read(number, S before, updates of the positions) for each. Returns the final
/// matrices, (sequences, heads, features, size).
template <typename Read>
Tensor run_delta(const DeltaBlocks& factors, const Blocks& blocks, int64_t heads, const Read& read) {
  const std::vector<Tensor> written = blocks.by_number(factors.written, heads);
  const std::vector<Tensor> own = blocks.by_number(factors.own, heads);
  const std::vector<Tensor> erased = blocks.by_number(factors.erased, heads);
  const std::vector<Tensor> kept =
      factors.kept.defined() ? blocks.by_number(factors.kept, heads) : std::vector<Tensor>();
  RunningStates states(
      at::zeros({blocks.sequences() * heads, factors.key.size(2), factors.own.size(2)}, factors.key.options()));
  for (size_t number = 0; number < written.size(); ++number) {
    const Tensor s = states.first(written[number].size(0));
    const Tensor added = at::baddbmm(own[number], erased[number], s, 1, -1);
    read(number, s, added);
    states.set(at::baddbmm(kept.empty() ? s : s * kept[number], written[number].transpose(1, 2), added));
  }
  return blocks.unsorted(split_heads(states.last(), heads));
}

/// Blocks for the delta rule; with decay, their size is a power of two, as causal_products requires.
Blocks delta_layout(const Ragged& layout, const Tensor& key, const Tensor& log_decay) {
  const int64_t size = block_size(layout, key.size(2));
  return {layout, log_decay.defined() ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))) : size};
}

}  // namespace

Tensor sum_rule(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& layout) {
  const int64_t heads = key.size(1);
  const Blocks blocks(layout, block_size(layout, key.size(2)));
  const Tensor q = blocks.cut(query);
  const Tensor k = blocks.cut(key);
  const Tensor v = blocks.cut(value);
  const Tensor within = at::bmm(at::bmm(q, k.transpose(1, 2)).tril(), v);
  if (blocks.sequences_at().size() <= 1) return blocks.join(within, heads);
  const Tensor before = merge_heads(sums_before(split_heads(at::bmm(k.transpose(1, 2), v), heads), blocks));
  return blocks.join(at::baddbmm(within, q, before), heads);
}

Tensor sum_rule_weights(const Tensor& key, const Tensor& value, const Ragged& layout) {
  const Blocks blocks(layout, block_size(layout, key.size(2)));
  const Tensor product = at::bmm(blocks.cut(key).transpose(1, 2), blocks.cut(value));
  return sums_of_sequences(split_heads(product, key.size(1)), blocks);
}

DeltaRule delta_rule(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& beta,
                     const Ragged& layout, const Tensor& log_decay) {
  if (layout.tokens() == 0) {
    return {at::zeros_like(value), delta_rule_weights(key, value, beta, layout, log_decay)};
  }
  const int64_t heads = key.size(1);
  const Blocks blocks = delta_layout(layout, key, log_decay);
  const Tensor q = blocks.cut(query);
  const DeltaBlocks factors = delta_blocks(key, value, beta, log_decay, blocks);
  const std::vector<Tensor> scores = blocks.by_number(factors.products(q), heads);
  const std::vector<Tensor> queries = blocks.by_number(factors.at_start(q), heads);
  std::vector<Tensor> out;
  const Tensor last = run_delta(factors, blocks, heads, [&](size_t number, const Tensor& before, const Tensor& added) {
    out.push_back(at::baddbmm(at::bmm(scores[number], added), queries[number], before));
  });
  return {blocks.join(at::cat(out, 0), heads), last};
}

Tensor delta_rule_weights(const Tensor& key, const Tensor& value, const Tensor& beta, const Ragged& layout,
                          const Tensor& log_decay) {
  const Blocks blocks = delta_layout(layout, key, log_decay);
  return run_delta(delta_blocks(key, value, beta, log_decay, blocks), blocks, key.size(1),
                   [](size_t, const Tensor&, const Tensor&) {});
}

Tensor read_weights(const Tensor& query, const Tensor& weights, const Ragged& layout) {
  const int64_t heads = query.size(1);
  const Blocks blocks(layout, block_size(layout, query.size(2)));
  if (blocks.count() == 0) return at::zeros({0, heads, weights.size(3)}, query.options());
  return blocks.join(at::bmm(blocks.cut(query), blocks.of_sequences(weights)), heads);
}

}  // namespace plumb::ops
