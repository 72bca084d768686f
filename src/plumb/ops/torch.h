// The only place that includes LibTorch's common headers; precompiled. Also handles differences between LibTorch
// versions.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

// From 2.3 on, allocate() is not const, and allocators must also implement copy_data().
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
#define PLUMB_ALLOCATE_CONST
#define PLUMB_COPY_DATA \
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }
#else
#define PLUMB_ALLOCATE_CONST const
#define PLUMB_COPY_DATA
#endif

namespace plumb {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The tensor as an optional argument of an autograd function: these do not accept undefined tensors.
inline c10::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? c10::optional<Tensor>(tensor) : c10::nullopt;
}

/// Gradients of `outputs` (weighted by `grad_outputs`) with respect to `inputs`; zeros for inputs that the outputs do
/// not depend on. With `create_graph`, the gradients can be differentiated again.
std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& grad_outputs, bool create_graph = false,
                              bool retain_graph = false);

}  // namespace plumb
