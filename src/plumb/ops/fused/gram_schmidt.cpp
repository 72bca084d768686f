#include <algorithm>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/gram_schmidt.h"

namespace plumb::ops::fused {

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w) {
  constexpr int64_t kParts = 64;  // partial sums, so that the result does not depend on the number of threads
  const size_t width = vectors.size() + 1;
  const int64_t size = w.numel();
  std::vector<double> parts(static_cast<size_t>(kParts) * width, 0.0);
  dispatch(w, [&]<typename T>() {
    std::vector<const T*> v;
    for (const Tensor& vector : vectors) v.push_back(vector.data_ptr<T>());
    T* rest = w.data_ptr<T>();
    const kernels::GramSchmidtKernels<T>& kernel = kernels::gram_schmidt<T>();
    parallel_ranges(kParts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        const int64_t part_end = size * (part + 1) / kParts;
        for (int64_t begin = size * part / kParts; begin < part_end; begin += kernels::kGramSchmidtBlock) {
          kernel.subtract_and_multiply(v.data(), v.size(), begin,
                                       std::min(begin + kernels::kGramSchmidtBlock, part_end),
                                       subtract.empty() ? nullptr : subtract.data(), products, rest,
                                       parts.data() + static_cast<size_t>(part) * width);
        }
      }
    });
  });
  std::vector<double> total(width, 0.0);
  for (size_t i = 0; i < parts.size(); ++i) total[i % width] += parts[i];
  return total;
}

}  // namespace plumb::ops::fused
