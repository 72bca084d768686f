#include "plumb/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/ops/kernels/optimizer.h"
#include "plumb/optim/update.h"

namespace plumb {

Registry<OptimizerFactory>& optimizers() {
  static Registry<OptimizerFactory> registry("optimizer");
  return registry;
}

double global_norm(const std::vector<Tensor>& gradients) {
  constexpr int64_t kChunk = 16384;
  struct Chunk {
    const Tensor* tensor;
    int64_t begin, size;
  };
  std::vector<Tensor> dense;
  for (const Tensor& gradient : gradients) dense.push_back(gradient.detach().contiguous());
  std::vector<Chunk> chunks;
  for (const Tensor& tensor : dense) {
    for (int64_t begin = 0; begin < tensor.numel(); begin += kChunk) {
      chunks.push_back({&tensor, begin, std::min(kChunk, tensor.numel() - begin)});
    }
  }
  std::vector<double> sums(chunks.size());
  parallel_ranges(static_cast<int64_t>(chunks.size()), 2, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const Chunk& chunk = chunks[i];
      ops::dispatch(*chunk.tensor, [&]<typename T>() {
        sums[i] = kernels::sum_of_squares(chunk.tensor->data_ptr<T>() + chunk.begin, chunk.size);
      });
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

double clip_scale(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1.0; }

void append_pieces(NamedTensors& tensors, const std::string& prefix, const Parameters& parameters, const Tensor& flat) {
  const std::vector<Tensor> pieces = parameters.split(flat);
  for (size_t i = 0; i < pieces.size(); ++i) tensors.emplace_back(prefix + parameters.all()[i].name, pieces[i]);
}

void load_pieces(const NamedTensors& tensors, const std::string& prefix, const Parameters& parameters,
                 const Tensor& flat, const std::string& origin) {
  const std::vector<Tensor> pieces = parameters.split(flat);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string name = prefix + parameters.all()[i].name;
    const Tensor& found = find_tensor(tensors, name, origin);
    if (found.sizes() != pieces[i].sizes()) {
      throw Error(fmt::format("{}: tensor '{}' has {} elements in another shape than the model's parameter", origin,
                              name, found.numel()),
                  "the file belongs to another configuration");
    }
    pieces[i].copy_(found);
  }
}

const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == tensors.end()) {
    throw Error(fmt::format("{}: tensor '{}' is missing", origin, name),
                "the file belongs to another optimizer or model");
  }
  return found->second;
}

}  // namespace plumb
