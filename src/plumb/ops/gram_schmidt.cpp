#include "plumb/ops/gram_schmidt.h"

#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w) {
  for (const Tensor& vector : vectors) require_one_device("Gram-Schmidt", w, vector);
  static constexpr Operation kGramSchmidt("Gram-Schmidt", PLUMB_FUSED(gram_schmidt), &reference::gram_schmidt);
  return kGramSchmidt(path_of(w), vectors, subtract, products, w);
}

}  // namespace plumb::ops
