// Pooling: reduces the vectors of a sequence's tokens to one vector.
#pragma once

#include <functional>

#include "plumb/base/ragged.h"
#include "plumb/base/registry.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// hidden: (tokens, d) → (sequences, d), or all of it. No sequence is empty.
using Pooling = std::function<Tensor(const Tensor& hidden, const Ragged& layout)>;
Registry<Pooling>& poolings();

}  // namespace plumb
