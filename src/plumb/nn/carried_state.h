// What a model that reads a text piece by piece keeps from one piece for the next.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// Tensors with a row for each sequence of the batch, by name and without a graph; empty before the first piece. The
/// sequences of the next batch continue those of the last one, in the same order.
struct CarriedState {
  std::vector<std::pair<std::string, Tensor>> tensors;

  [[nodiscard]] bool empty() const { return tensors.empty(); }
};

}  // namespace plumb
