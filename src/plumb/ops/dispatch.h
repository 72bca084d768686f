// Dispatches on a tensor's element type, for code that reads elements through pointers.
#pragma once

#include "plumb/base/error.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Calls `work.template operator()<float>()` or `<double>` depending on the tensor's type. Throws Error for other types
/// and for tensors that are not in CPU memory.
template <typename Work>
void dispatch(const Tensor& tensor, const Work& work) {
  if (!tensor.device().is_cpu()) throw Error("elements on " + tensor.device().str() + " cannot be read by the CPU");
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return work.template operator()<float>();
    case at::kDouble:
      return work.template operator()<double>();
    default:
      throw Error(std::string("no kernel for elements of type ") + at::toString(tensor.scalar_type()));
  }
}

}  // namespace plumb::ops
