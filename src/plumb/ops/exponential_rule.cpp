#include "plumb/ops/exponential_rule.h"

#include <bit>
#include <vector>

#include "plumb/ops/blocks.h"
#include "plumb/ops/scaled_products.h"

namespace plumb::ops {
namespace {

/// Stands for log 0: the key of a padding position, the peak before the first position. Finite, so that the difference
/// of two of them is 0.
constexpr double kNothing = -1e30;

/// Makes 0/0 equal 0 if nothing has been written.
constexpr double kSmallestDivisor = 1e-30;

Tensor with_ones(const Tensor& value) {
  std::vector<int64_t> shape = value.sizes().vec();
  shape.back() = 1;
  return at::cat({value, at::ones(shape, value.options())}, -1);
}

/// (…, size + 1): Σ w·v and Σ w → (…, size)
Tensor quotient(const Tensor& sums) {
  const int64_t size = sums.size(-1) - 1;
  return sums.narrow(-1, 0, size) / (sums.narrow(-1, size, 1) + kSmallestDivisor);
}

/// Subtracts max(q + peak) over the features, so that the largest element of exp(result + peak) is 1.
Tensor lowered(const Tensor& query, const Tensor& peak) {
  return query - (query.detach() + peak).amax(-1, /*keepdim=*/true);
}

/// [block number]: the states that its blocks start from.
struct States {
  std::vector<Tensor> sums;   // S and z, (blocks·heads, features, size + 1)
  std::vector<Tensor> peaks;  // (blocks·heads, 1, features)
  Tensor last;                // after each sequence, (sequences·heads, features, size + 2), by rank
};

/// key: (blocks·heads, positions, features); value: (blocks·heads, positions, size + 1)
States run_exponential(const Tensor& key, const Tensor& value, const Blocks& blocks, int64_t heads) {
  const std::vector<Tensor> highest = blocks.by_number(key.detach().amax(1, /*keepdim=*/true), heads);
  States states;
  std::vector<Tensor> ends;
  RunningStates peaks(at::full({blocks.sequences() * heads, 1, key.size(2)}, kNothing, key.options()));
  for (const Tensor& own : highest) {
    states.peaks.push_back(peaks.first(own.size(0)));
    ends.push_back(at::maximum(states.peaks.back(), own));
    peaks.set(ends.back());
  }
  RunningStates sums(at::zeros({blocks.sequences() * heads, key.size(2), value.size(2)}, key.options()));
  if (!ends.empty()) {
    const Tensor written = at::bmm(at::exp(key - at::cat(ends, 0)).transpose(1, 2), value);
    const std::vector<Tensor> by_number = blocks.by_number(written, heads);
    for (size_t number = 0; number < by_number.size(); ++number) {
      states.sums.push_back(sums.first(by_number[number].size(0)));
      sums.set(states.sums.back() * at::exp(states.peaks[number] - ends[number]).transpose(1, 2) + by_number[number]);
    }
  }
  states.last = at::cat({sums.last(), peaks.last().transpose(1, 2)}, 2);
  return states;
}

Blocks exponential_blocks(const Ragged& layout, const Tensor& key) {
  return {layout, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(block_size(layout, key.size(2)))))};
}

}  // namespace

Tensor exponential_rule(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& layout) {
  if (layout.tokens() == 0) return at::zeros_like(value);
  const int64_t heads = key.size(1);
  const Blocks blocks = exponential_blocks(layout, key);
  const Tensor k = blocks.cut(key, kNothing);
  const Tensor v = blocks.cut(with_ones(value));
  const States states = run_exponential(k, v, blocks, heads);
  const Tensor before = at::cat(states.peaks, 0);
  const Tensor peak = at::maximum(std::get<0>(at::cummax(k.detach(), 1)), before);
  const Tensor q = lowered(blocks.cut(query), peak);
  Tensor sums = at::bmm(causal_products({{}, q}, {{}, k}, peak), v);
  if (states.sums.size() > 1) sums = at::baddbmm(sums, at::exp(q + before), at::cat(states.sums, 0));
  return quotient(blocks.join(sums, heads));
}

Tensor exponential_rule_weights(const Tensor& key, const Tensor& value, const Ragged& layout) {
  const int64_t heads = key.size(1);
  const Blocks blocks = exponential_blocks(layout, key);
  const Tensor last = run_exponential(blocks.cut(key, kNothing), blocks.cut(with_ones(value)), blocks, heads).last;
  return blocks.unsorted(last.view({blocks.sequences(), heads, last.size(1), last.size(2)}));
}

Tensor exponential_rule_read(const Tensor& query, const Tensor& weights, const Ragged& layout) {
  const int64_t heads = query.size(1);
  const int64_t size = weights.size(3) - 2;
  const Blocks blocks(layout, block_size(layout, query.size(2)));
  if (blocks.count() == 0) return at::zeros({0, heads, size}, query.options());
  const Tensor state = blocks.of_sequences(weights);
  const Tensor peak = state.narrow(2, size + 1, 1).transpose(1, 2).detach();
  const Tensor q = lowered(blocks.cut(query), peak);
  return quotient(blocks.join(at::bmm(at::exp(q + peak), state.narrow(2, 0, size + 1)), heads));
}

Tensor exponential_rule_start(int64_t sequences, int64_t heads, int64_t features, int64_t size,
                              const at::TensorOptions& options) {
  return at::cat({at::zeros({sequences, heads, features, size + 1}, options),
                  at::full({sequences, heads, features, 1}, kNothing, options)},
                 3);
}

Tensor exponential_rule_step(const Tensor& query, const Tensor& key, const Tensor& value, Tensor& weights) {
  const int64_t size = value.size(2);
  const Tensor before = weights.select(3, size + 1);
  const Tensor peak = at::maximum(before, key.detach());
  const Tensor sums = weights.narrow(3, 0, size + 1) * at::exp(before - peak).unsqueeze(3) +
                      at::exp(key - peak).unsqueeze(3) * with_ones(value).unsqueeze(2);
  weights = at::cat({sums, peak.unsqueeze(3)}, 3);
  const Tensor q = at::exp(lowered(query, peak) + peak);
  return quotient(at::matmul(q.unsqueeze(2), sums).squeeze(2));
}

}  // namespace plumb::ops
