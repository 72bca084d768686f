// Reference implementations for testing the kernels: the operations as plain at:: formulas in any type, sequence by
// sequence and head by head, usually in float64, with LibTorch's derivatives.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/base/random.h"
#include "plumb/ops/torch.h"

namespace plumb::reference {

/// (x − μ)/√(var + eps)·γ + β; without β, x/√(mean(x²) + eps)·γ.
inline Tensor norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  const Tensor centered = beta.defined() ? x - x.mean(1, true) : x;
  const Tensor y = centered / ((centered * centered).mean(1, true) + eps).sqrt() * gamma;
  return beta.defined() ? y + beta : y;
}

/// softmax(q·kᵀ/√size)·v of one head of one sequence.
inline Tensor attention_head(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  Tensor scores = at::mm(q, k.t()) / std::sqrt(static_cast<double>(q.size(1)));
  if (causal) {
    scores = scores.masked_fill(at::ones_like(scores.detach()).triu(1).to(at::kBool),
                                -std::numeric_limits<double>::infinity());
  }
  return at::mm(at::softmax(scores, 1), v);
}

/// query: (query tokens, heads·size); key, value: (key tokens, kv_heads·size). With H query heads per key-value head,
/// head h uses key-value head h / H.
inline Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& queries,
                        const Ragged& keys, int64_t size, bool causal) {
  const int64_t heads = query.size(1) / size;
  const int64_t shared_by = query.size(1) / key.size(1);
  std::vector<Tensor> sequences;
  for (int64_t s = 0; s < queries.sequences(); ++s) {
    std::vector<Tensor> columns;
    for (int64_t h = 0; h < heads; ++h) {
      const auto part = [&](const Tensor& matrix, const Ragged& layout, int64_t head) {
        return matrix.narrow(0, layout.begin(s), layout.length(s)).narrow(1, head * size, size);
      };
      columns.push_back(attention_head(part(query, queries, h), part(key, keys, h / shared_by),
                                       part(value, keys, h / shared_by), causal));
    }
    sequences.push_back(at::cat(columns, 1));
  }
  return at::cat(sequences, 0);
}

/// scale · Σ weight·[(1 − ε)·nll + ε·mean over the vocabulary of −log p]; without weights, each is 1.
inline Tensor cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels,
                            const std::vector<double>& weights, double smoothing, double scale) {
  const Tensor log_p = at::log_softmax(logits, 1);
  const Tensor nll = -log_p.gather(1, at::tensor(labels, at::kLong).unsqueeze(1)).squeeze(1);
  const Tensor losses = (1 - smoothing) * nll - smoothing * log_p.mean(1);
  return scale * (weights.empty() ? losses : at::tensor(weights, logits.options()) * losses).sum();
}

/// 1 if an element at `first` + i survives, else 0: 16 bits of philox(seed, stream, position / 8) per position.
inline std::vector<double> dropout_mask(uint64_t seed, uint64_t stream, uint32_t keep_below, int64_t first, int64_t n) {
  std::vector<double> mask;
  for (int64_t i = first; i < first + n; ++i) {
    const auto words = philox(seed, stream, static_cast<uint64_t>(i / 8));
    const uint32_t word = words[static_cast<size_t>(i % 8 / 2)];
    mask.push_back((i % 2 == 0 ? word & 0xFFFF : word >> 16) < keep_below ? 1.0 : 0.0);
  }
  return mask;
}

}  // namespace plumb::reference
