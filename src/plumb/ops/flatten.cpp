#include "plumb/ops/flatten.h"

namespace plumb {

std::vector<Tensor> split_like(const Tensor& flat, const std::vector<Tensor>& like) {
  std::vector<Tensor> views;
  views.reserve(like.size());
  int64_t begin = 0;
  for (const Tensor& tensor : like) {
    views.push_back(flat.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
  return views;
}

Tensor joined(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (const Tensor& tensor : tensors) rows.push_back(tensor.detach().reshape({-1}));
  return at::cat(rows);
}

}  // namespace plumb
