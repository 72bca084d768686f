// The reference implementation of every operation: a few lines of ATen for any device, any floating-point type and any
// order of derivative. Used where the kernels are not, and as a reference in the tests of the kernels. Each is
// documented with the operation of the same name, which has checked the arguments.
#pragma once

#include <memory>
#include <vector>

#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/gram_schmidt.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/stochastic_rounding.h"
#include "plumb/ops/top_scores.h"
#include "plumb/ops/torch.h"
#include "plumb/ops/update.h"

namespace plumb::ops::reference {

/// Attention of `queries` to `keys`, with query, key and value apart: (tokens, width), (key tokens, kv_width) twice.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& queries, const Ragged& keys,
                 const HeadShape& shape, bool causal);
Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal);
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape);
Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape);
Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape);

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale);
CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale);

/// The four 32-bit words of philox(seed, stream, counter) (base/random.h) for each of `counters`, (n) → (n, 4), int64.
Tensor philox_words(uint64_t seed, uint64_t stream, const Tensor& counters);

/// The counters for the elements of x in order, one for eight elements. If x is a subset of the rows, the width must be
/// a multiple of eight.
Tensor dropout_counters(const Tensor& x, const DropoutKey& key);

/// `residual` may be undefined.
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale);

void round_stochastically(const Tensor& x, const RoundingKey& key);

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);

Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options);
Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options);
/// What gemm() adds to a product and applies to it; writes to the product.
Tensor finish(const Tensor& product, const GemmOptions& options);
Tensor column_sums(const Tensor& x);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation);
/// `start` is defined; at least one token.
LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout);

std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision);

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize);

template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces);
Number sum_of_squares(const std::vector<Tensor>& tensors);

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w);

}  // namespace plumb::ops::reference
