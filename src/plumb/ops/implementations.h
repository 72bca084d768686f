// The implementations of the operations, among which path.h chooses: differentiable functions of the same names in
// three namespaces. Not every namespace defines every operation; the operation's table (path.h) names those that exist.
#pragma once

#include <memory>
#include <vector>

#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/path.h"
#include "plumb/ops/stochastic_rounding.h"
#include "plumb/ops/top_scores.h"
#include "plumb/ops/torch.h"
#include "plumb/ops/update.h"

namespace plumb::ops {

/// How dropout with probability p draws: it keeps an element whose 16 bits are less than `below`, and multiplies it by
/// `scale`, 65536/below, or 0 if it keeps none.
struct KeptShare {
  int64_t below;
  double scale;
};
KeptShare kept_share(double p);

}  // namespace plumb::ops

/// The CPU kernels (ops/kernels), also for the backward pass, of tensors that path_of() gives them.
namespace plumb::ops::fused {
#include "plumb/ops/operations-inl.h"
template <>
void update(const std::vector<LambUpdate>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<3>& pieces);
}  // namespace plumb::ops::fused

/// What LibTorch computes on a GPU in one or few kernels. Where LibTorch has no second derivative, the reference
/// provides it. Within a PrecisionGuard for bfloat16, attention rounds queries, keys and values to it; sums are
/// float32.
namespace plumb::ops::gpu {
#include "plumb/ops/operations-inl.h"
template <>
void update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<3>& pieces);
}  // namespace plumb::ops::gpu

/// A few lines of ATen for any device, any floating-point type and any order of derivative. Used where the others are
/// not, and as a reference in the tests of the kernels.
namespace plumb::ops::reference {
#include "plumb/ops/operations-inl.h"

/// Attention of `queries` to `keys`, with query, key and value apart: (tokens, width), (key tokens, kv_width) twice.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& queries, const Ragged& keys,
                 const HeadShape& shape, bool causal);

/// The four 32-bit words of philox(seed, stream, counter) (base/random.h) for each of `counters`, (n) → (n, 4), int64.
Tensor philox_words(uint64_t seed, uint64_t stream, const Tensor& counters);

/// The counters for the elements of x in order, one for eight elements. If x is a subset of the rows, the width must be
/// a multiple of eight.
Tensor dropout_counters(const Tensor& x, const DropoutKey& key);

void round_stochastically(const Tensor& x, const RoundingKey& key);

/// Completes gemm(): adds the accumulated matrix and the bias, and applies ReLU. Writes to the product.
Tensor add_bias_and_activation(const Tensor& product, const GemmOptions& options);

}  // namespace plumb::ops::reference
