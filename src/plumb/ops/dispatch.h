// From a tensor's element type to a template argument.
#pragma once

#include "plumb/base/error.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Calls `work.template operator()<float>()` or `<double>` by the tensor's type. Throws Error for any other.
template <typename Work>
void dispatch(const Tensor& tensor, const Work& work) {
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
