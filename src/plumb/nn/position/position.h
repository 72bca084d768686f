// Position encodings that are added to the embeddings: the interface and the registry of their kinds.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/base/registry.h"
#include "plumb/nn/parameters.h"

namespace plumb {

class Positions {
 public:
  virtual ~Positions() = default;
  /// Vectors of the positions 0 … length − 1 at least, (≥ length, d_model). Throws Error if the encoding has an end
  /// before.
  [[nodiscard]] virtual Tensor table(int64_t length) = 0;
};

/// For one side of a model; `prefix` names its parameters ("src_position").
using PositionsFactory = std::function<std::unique_ptr<Positions>(Parameters&, const std::string& prefix,
                                                                  int64_t d_model, int64_t max_positions)>;
Registry<PositionsFactory>& positions();

}  // namespace plumb
