// Part of a forward pass: some of a model's layers, and what passes from one layer to the next.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plumb/nn/residual/residual.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// Layers [first, last) of a model, counted through its stacks, the encoder's first. The stack's input belongs to its
/// first layer, its end (ResidualScheme::leave) to the last one. On entry, the tensors are the input of layer `first`;
/// on return, that of layer `last`.
struct LayerRange {
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  Stream stream{};        // within a stack; else empty
  Tensor first_values{};  // (tokens, kv_width), of the stack's first layer, if later layers read them
  Tensor memory{};        // (source tokens, d_model), after the encoder

  /// The defined tensors, in a fixed order.
  [[nodiscard]] std::vector<Tensor*> tensors() {
    std::vector<Tensor*> all = {&stream.x, &stream.second, &first_values, &memory};
    for (Tensor& source : stream.sources) all.push_back(&source);
    std::erase_if(all, [](const Tensor* tensor) { return !tensor->defined(); });
    return all;
  }
};

}  // namespace plumb
