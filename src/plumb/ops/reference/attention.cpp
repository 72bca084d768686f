// All sequences at once, zero-padded to the longest; the softmax ignores the padding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/ops/implementations.h"
#include "plumb/ops/index.h"

namespace plumb::ops::reference {
namespace {

/// The row of each token when every sequence is padded to the longest one.
std::vector<int64_t> places(const Ragged& layout) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t p = 0; p < layout.length(s); ++p) rows.push_back(s * layout.longest() + p);
  }
  return rows;
}

/// x: (tokens, heads·size) → (sequences, heads, longest, size)
Tensor filled_up(const Tensor& x, const Ragged& layout, int64_t size) {
  const Tensor zeros = at::zeros({layout.sequences() * layout.longest(), x.size(1)}, x.options());
  const Tensor rows = zeros.index_copy(0, index_beside(x, places(layout)), x);
  return rows.view({layout.sequences(), layout.longest(), x.size(1) / size, size}).transpose(1, 2);
}

/// query: (tokens, width); key, value: (key tokens, kv_width) → (tokens, width). last(s, p) is the last key that
/// position p of sequence s sees.
template <typename Last>
Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& queries, const Ragged& keys,
              const HeadShape& shape, const Last& last) {
  // A sequence without keys sees its padding, which adds nothing: no key at all would make the softmax NaN.
  std::vector<int64_t> seen;
  for (int64_t s = 0; s < queries.sequences(); ++s) {
    for (int64_t p = 0; p < queries.longest(); ++p) seen.push_back(std::max<int64_t>(last(s, p), 0));
  }
  const int64_t sequences = queries.sequences();
  const Tensor limit = index_beside(query, seen).view({sequences, 1, 1, queries.longest(), 1});
  const Tensor hidden = at::arange(keys.longest(), limit.options()) > limit;

  // Heads that share a key-value head become additional rows of one matrix.
  const Tensor q = filled_up(query, queries, shape.size)
                       .reshape({sequences, shape.kv_heads, shape.group() * queries.longest(), shape.size});
  const Tensor k = filled_up(key, keys, shape.size);
  const Tensor v = filled_up(value, keys, shape.size);
  const Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(shape.size));
  const Tensor by_head = scores.view({sequences, shape.kv_heads, shape.group(), queries.longest(), keys.longest()});
  const Tensor p = at::softmax(by_head.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
  const Tensor out = at::matmul(p.view_as(scores), v)
                         .view({sequences, shape.heads, queries.longest(), shape.size})
                         .transpose(1, 2)
                         .reshape({sequences * queries.longest(), shape.width()});
  return out.index_select(0, index_beside(out, places(queries)));
}

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& queries, const Ragged& keys,
                 const HeadShape& shape, bool causal) {
  return attend(query, key, value, queries, keys, shape,
                [&](int64_t s, int64_t p) { return causal ? p : keys.length(s) - 1; });
}

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal) {
  const std::vector<Tensor> parts = packed.split_with_sizes({shape.width(), shape.kv_width(), shape.kv_width()}, 1);
  return attention(parts[0], parts[1], parts[2], layout, layout, shape, causal);
}

Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape) {
  const std::vector<Tensor> parts = packed.chunk(2, 1);
  return attention(query, parts[0], parts[1], query_layout, key_layout, shape, /*causal=*/false);
}

Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < layout.sequences(); ++row) lengths.push_back(cache.length(row));
  const Ragged keys(lengths);
  const std::vector<Tensor> parts = at::cat(cache.by_row(), 0).chunk(2, 1);
  return attend(query, parts[0], parts[1], layout, keys, shape,
                [&](int64_t row, int64_t p) { return keys.length(row) - layout.length(row) + p; });
}

}  // namespace plumb::ops::reference
