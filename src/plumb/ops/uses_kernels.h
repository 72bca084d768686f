// Whether an operation uses the CPU kernels or its reference implementation. The reference is composed of ATen
// operations, for any device, floating-point type and order of derivative; the version that calls the kernels has the
// same name, in namespace `fused`. After its checks, an operation thus reads
//   if constexpr (kKernelsBuilt) {
//     if (uses_kernels(x)) return fused::operation(x);
//   }
//   return reference::operation(x);
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Whether the kernels are compiled in (CMake option PLUMB_CPU_KERNELS).
#ifdef PLUMB_CPU_KERNELS
inline constexpr bool kKernelsBuilt = true;
#else
inline constexpr bool kKernelsBuilt = false;
#endif

/// False if the environment variable PLUMB_KERNELS is "off": every operation then uses its reference.
bool kernels_wanted();

/// True if the kernels are compiled in, the environment variable PLUMB_KERNELS is not "off", and the tensor is float32
/// or float64 in CPU memory.
bool uses_kernels(const Tensor& tensor);
bool uses_kernels(const std::vector<Tensor>& tensors);  // all of them

/// The same without the check of the type: products also accept bfloat16 and integers.
bool kernels_serve(const at::Device& device);

}  // namespace plumb::ops
