#include "plumb/ops/gram_schmidt.h"

#include <ATen/record_function.h>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/device.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/gram_schmidt_pass.h"

namespace plumb::ops {
namespace {

/// The pass by LibTorch's operations, for other devices and types than those of the plain one.
std::vector<double> gram_schmidt_of_tensors(const std::vector<Tensor>& vectors, const std::vector<double>& subtract,
                                            bool products, Tensor& w) {
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

}  // namespace

std::vector<double> gram_schmidt(const std::vector<Tensor>& vectors, const std::vector<double>& subtract, bool products,
                                 Tensor& w) {
  RECORD_USER_SCOPE("Gram-Schmidt");
  bool fit = w.is_contiguous() && (subtract.empty() || subtract.size() == vectors.size());
  for (const Tensor& vector : vectors) {
    require_one_device("Gram-Schmidt", w, vector);
    fit = fit && vector.is_contiguous() && vector.numel() == w.numel() && vector.scalar_type() == w.scalar_type();
  }
  if (!fit) throw Error("Gram-Schmidt: the vectors or their factors do not match");
  if (!w.is_cpu() || (w.scalar_type() != at::kFloat && w.scalar_type() != at::kDouble))
    return gram_schmidt_of_tensors(vectors, subtract, products, w);
  std::vector<double> sums;
  dispatch(w, [&]<typename T>() {
    std::vector<const T*> places;
    for (const Tensor& vector : vectors) places.push_back(vector.data_ptr<T>());
    const auto ranges = [](int64_t count, const auto& work) { parallel_ranges(count, 1, work); };
    sums = gram_schmidt_pass<T>(places, subtract, products, w.numel(), w.data_ptr<T>(), ranges);
  });
  return sums;
}

}  // namespace plumb::ops
