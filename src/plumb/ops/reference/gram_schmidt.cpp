#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w) {
  const at::NoGradGuard no_graph;
  Tensor rest = w.to(at::kDouble);
  for (size_t k = 0; k < subtract.size(); ++k) rest = rest - subtract[k] * vectors[k].to(at::kDouble);
  if (!subtract.empty()) {
    w.copy_(rest);
    rest = w.to(at::kDouble);  // the sums use w as stored
  }
  std::vector<double> sums(vectors.size() + 1, 0.0);
  for (size_t k = 0; products && k < vectors.size(); ++k)
    sums[k] = at::dot(vectors[k].to(at::kDouble), rest).item<double>();
  sums.back() = at::dot(rest, rest).item<double>();
  return sums;
}

}  // namespace plumb::ops::reference
