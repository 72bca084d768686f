// Pooling: reduces the vectors of a sequence's tokens to one vector.
#pragma once

#include <functional>

#include "plumb/base/ragged.h"
#include "plumb/base/registry.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// hidden: (tokens, d) → (sequences, vectors·d), or hidden itself (`none`). No sequence may be empty.
struct Pooling {
  std::function<Tensor(const Tensor& hidden, const Ragged& layout)> reduce;
  int64_t vectors = 1;  // of d features each, side by side in the result

  [[nodiscard]] Tensor operator()(const Tensor& hidden, const Ragged& layout) const { return reduce(hidden, layout); }
};
Registry<Pooling>& poolings();

}  // namespace plumb
