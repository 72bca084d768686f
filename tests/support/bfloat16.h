// Whether this processor multiplies matrices of bfloat16.
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
