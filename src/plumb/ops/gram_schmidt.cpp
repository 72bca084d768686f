#include "plumb/ops/gram_schmidt.h"

#include "plumb/ops/device.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w) {
  for (const Tensor& vector : vectors) require_one_device("Gram-Schmidt", w, vector);
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(w)) return fused::gram_schmidt(vectors, subtract, products, w);
  }
  return reference::gram_schmidt(vectors, subtract, products, w);
}

}  // namespace plumb::ops
