// Whether an operation uses the CPU kernels or its reference implementation. The reference is a composition of ATen
// operations, for any device, floating-point type and order of derivative; the version that calls the kernels is a
// function of the same name and meaning in namespace `fused`. An operation is thus, after its checks,
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

/// The decision: the kernels are compiled in, PLUMB_KERNELS is not "off" in the environment, and the tensor is in CPU
/// memory, in float32 or float64.
bool uses_kernels(const Tensor& tensor);
bool uses_kernels(const std::vector<Tensor>& tensors);  // all of them

/// The same for operands of any type: products also accept bfloat16 and integers.
bool kernels_serve(const at::Device& device);

}  // namespace plumb::ops
