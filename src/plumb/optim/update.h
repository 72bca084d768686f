// What optimizers share: one parallel pass over the flat buffer, and their state as named tensors.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "plumb/base/parallel.h"
#include "plumb/io/safetensors.h"
#include "plumb/nn/parameters.h"
#include "plumb/ops/dispatch.h"

namespace plumb {

/// Calls kernel(gradient, begin, n), `gradient` a pointer to n elements of which the first belongs to element `begin`
/// of the flat buffer, in parallel, until every element has been visited once. The gradients are read where they lie.
/// Throws Error if gradients and parameters do not match.
template <typename T, typename Kernel>
void for_each_piece(const Parameters& parameters, const std::vector<Tensor>& gradients, const Kernel& kernel) {
  if (gradients.size() != parameters.all().size()) throw Error("an optimizer was given gradients of another model");
  std::vector<Tensor> dense;
  std::vector<int64_t> begins{0};
  for (size_t i = 0; i < gradients.size(); ++i) {
    dense.push_back(gradients[i].contiguous());
    if (dense[i].numel() != parameters.all()[i].value.numel())
      throw Error("the gradient of '" + parameters.all()[i].name + "' has another size");
    begins.push_back(begins.back() + dense[i].numel());
  }
  constexpr int64_t kGrain = 16384;
  parallel_ranges(begins.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1);
    for (; begin < end; ++i) {
      const int64_t n = std::min(end, begins[i + 1]) - begin;
      if (n > 0) kernel(dense[i].template data_ptr<T>() + (begin - begins[i]), begin, n);
      begin += n;
    }
  });
}

/// Appends a flat vector as tensors of the parameters' names behind `prefix`, and the reverse: copies them into the
/// vector. The latter throws Error, naming `origin`, if one is missing or of another shape.
void append_pieces(NamedTensors& tensors, const std::string& prefix, const Parameters& parameters, const Tensor& flat);
void load_pieces(const NamedTensors& tensors, const std::string& prefix, const Parameters& parameters,
                 const Tensor& flat, const std::string& origin);

/// The tensor of this name. Throws Error, naming `origin`, if there is none.
const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin);

}  // namespace plumb
