// The operations that LibTorch computes on a GPU in one or few kernels: differentiable functions, each documented with
// the operation of the same name, which has checked the arguments. Where LibTorch has no second derivative, the
// operation's reference provides it.
#pragma once

#include <vector>

#include "plumb/ops/attention.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/torch.h"
#include "plumb/ops/update.h"

namespace plumb::ops {

/// Whether LibTorch has them: from 2.8 on, if it was built for GPUs (PLUMB_GPU_OPERATIONS).
#if defined(PLUMB_GPU_OPERATIONS) && (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8))
#define PLUMB_GPU_BUILT
inline constexpr bool kGpuBuilt = true;
#else
inline constexpr bool kGpuBuilt = false;
#endif

namespace gpu {

/// True if they are compiled in, the environment variable PLUMB_KERNELS is not "off", and the tensor is on a GPU.
bool serves(const Tensor& tensor);

/// Whether fused attention accepts these heads and layouts: float32, sizes that are multiples of 8 up to 256, and no
/// empty sequence.
bool attends(const Tensor& query, const HeadShape& shape, const Ragged& queries, const Ragged& keys);

/// Within a PrecisionGuard for bfloat16, queries, keys and values are rounded to it; sums are float32.
Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal);
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape);

/// a, b: bfloat16.
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options);

/// Whether a mask can be drawn in one kernel: the rows begin at multiples of eight elements.
bool draws(const Tensor& x, const DropoutKey& key);
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);

void update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<3>& pieces);
Number sum_of_squares(const std::vector<Tensor>& tensors);

}  // namespace gpu
}  // namespace plumb::ops
