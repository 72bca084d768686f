// State that a model carries from one piece of a text to the next.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// Tensors by name, one row per sequence of the batch, without a graph; empty before the first piece. The sequences of
/// the next batch continue those of the previous one, in the same order.
struct CarriedState {
  std::vector<std::pair<std::string, Tensor>> tensors;

  [[nodiscard]] bool empty() const { return tensors.empty(); }
};

}  // namespace plumb
