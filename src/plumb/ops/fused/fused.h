// The operations computed by the CPU kernels (ops/kernels): differentiable functions whose backward pass also uses
// kernels, for tensors for which uses_kernels() is true. Each is documented with the operation of the same name, which
// has checked the arguments.
#pragma once

#include <memory>
#include <vector>

#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/gram_schmidt.h"
#include "plumb/ops/kernels/activation.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/top_scores.h"
#include "plumb/ops/torch.h"
#include "plumb/ops/update.h"

namespace plumb::ops::fused {

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal);
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape);
/// float32 only; at least one token.
Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape);
Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape);

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale);
CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale);

/// x·σ(g(x)) with the gate's g (kernels/activation.h): silu() and gelu_tanh().
Tensor logistic_gate(const Tensor& x, const kernels::LogisticGate& gate);

/// `residual` may be undefined.
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale);

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);

/// x: float32.
Tensor to_bfloat16(const Tensor& x);

Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options);
Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options);
Tensor column_sums(const Tensor& x);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation);
/// `start` is defined; at least one token.
LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout);
/// weight: float32.
std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision);

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize);

template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces);
double sum_of_squares(const std::vector<Tensor>& tensors);

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w);

}  // namespace plumb::ops::fused
