// The one way through an operation. Up to three functions of the same name compute it: in namespace `fused` the CPU
// kernels, in `gpu` LibTorch's fused operations, and in `reference` a composition of ATen operations, for any device,
// floating-point type and order of derivative. An operation checks its arguments and calls its table of them:
//   constexpr Operation kRmsNorm("RMS norm", PLUMB_FUSED(rms_norm), &reference::rms_norm, PLUMB_GPU(rms_norm));
//   return kRmsNorm(path_of(x), x, gamma, eps);
#pragma once

#include <ATen/record_function.h>
#include <torch/version.h>

#include <utility>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Whether the kernels are compiled in (CMake option PLUMB_CPU_KERNELS), and the address of one of `fused`, or null.
#ifdef PLUMB_CPU_KERNELS
inline constexpr bool kKernelsBuilt = true;
#define PLUMB_FUSED(function) (&fused::function)
#else
inline constexpr bool kKernelsBuilt = false;
#define PLUMB_FUSED(function) (static_cast<decltype(&fused::function)>(nullptr))
#endif

/// Whether LibTorch has the operations of `gpu`: from 2.8 on, if it was built for GPUs (PLUMB_GPU_OPERATIONS).
#if defined(PLUMB_GPU_OPERATIONS) && (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8))
#define PLUMB_GPU_BUILT
inline constexpr bool kGpuBuilt = true;
#define PLUMB_GPU(function) (&gpu::function)
#else
inline constexpr bool kGpuBuilt = false;
#define PLUMB_GPU(function) (static_cast<decltype(&gpu::function)>(nullptr))
#endif

enum class Path { reference, kernels, gpu };

/// Whether the kernels serve tensors on a device: compiled in, it is the CPU, and the environment variable
/// PLUMB_KERNELS is not "off", which makes every operation use its reference. Products accept bfloat16 and integers,
/// other operations float32 and float64.
bool kernels_serve(const at::Device& device);

/// Whether LibTorch's operations serve a tensor: compiled in, PLUMB_KERNELS is not "off", and it is on a GPU.
bool gpu_serves(const Tensor& tensor);

/// The kernels if they accept the tensor, as float32 or float64; LibTorch's operations if it is on a GPU, and `gpu`
/// says that they accept it otherwise; else the reference.
Path path_of(const Tensor& tensor, bool gpu = true);

/// The kernels if they accept all tensors; LibTorch's operations if the first one is on a GPU; else the reference.
Path path_of(const std::vector<Tensor>& tensors);

/// The functions that compute an operation. LibTorch's profilers see its calls by its name, in the user's scope.
template <typename Function>
class Operation {
 public:
  /// `kernels`, `gpu`: null if the operation has no such implementation.
  constexpr Operation(const char* name, Function* kernels, Function* reference, Function* gpu = nullptr)
      : name_(name), kernels_(kernels), reference_(reference), gpu_(gpu) {}

  /// Calls the implementation of this path, or the reference if the operation has no such implementation.
  template <typename... Arguments>
  auto operator()(Path path, Arguments&&... arguments) const {
    RECORD_USER_SCOPE(name_);
    Function* const preferred = path == Path::kernels ? kernels_ : path == Path::gpu ? gpu_ : nullptr;
    return (preferred != nullptr ? preferred : reference_)(std::forward<Arguments>(arguments)...);
  }

 private:
  const char* name_;
  Function* kernels_;
  Function* reference_;
  Function* gpu_;
};

}  // namespace plumb::ops
