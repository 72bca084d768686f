// Whether an operation is computed by the CPU kernels or by its reference. The reference is a composition of ATen's
// operations, for any device, floating-point type and order of derivative; what calls the kernels is a function of the
// same name and meaning in namespace `fused`. So an operation is, after its checks,
//   if constexpr (kKernelsBuilt) {
//     if (uses_kernels(x)) return fused::operation(x);
//   }
//   return reference::operation(x);
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Whether the kernels are compiled in: the CMake option PLUMB_CPU_KERNELS.
#ifdef PLUMB_CPU_KERNELS
inline constexpr bool kKernelsBuilt = true;
#else
inline constexpr bool kKernelsBuilt = false;
#endif

/// The one decision: the kernels are compiled in, the environment does not say PLUMB_KERNELS=off, and the tensor is in
/// the CPU's memory, in float32 or float64.
bool uses_kernels(const Tensor& tensor);
bool uses_kernels(const std::vector<Tensor>& tensors);  // all of them

/// The same for operands of any type: products take bfloat16 and integers too.
bool kernels_serve(const at::Device& device);

}  // namespace plumb::ops
