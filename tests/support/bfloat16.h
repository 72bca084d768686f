// Whether this processor has bfloat16 matrix products.
#pragma once

#include "plumb/base/error.h"
#include "plumb/ops/linear.h"

namespace plumb::test {

inline bool has_bfloat16_products() {
  const Tensor a = at::ones({1, 1}, at::kBFloat16);
  try {
    ops::gemm(a, a);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace plumb::test
