// Position encodings: the interface and the registry of their kinds. One is added to the embeddings, or acts within
// self-attention.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "plumb/base/options.h"
#include "plumb/base/registry.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/position/relative.h"

namespace plumb {

/// What positions are built for: one side of a model.
struct PositionShape {
  int64_t d_model = 0;
  int64_t heads = 1;          // of queries
  int64_t max_positions = 0;  // of encodings that have an end
  bool causal = false;        // self-attention looks back only
  int64_t head_size = 0;      // 0: d_model/heads
  VariantOptions options{};

  [[nodiscard]] int64_t size() const { return head_size > 0 ? head_size : d_model / heads; }
};

class Positions {
 public:
  virtual ~Positions() = default;

  /// Vectors of the positions 0 … length − 1 at least, (≥ length, d_model), added to the embeddings; undefined if
  /// nothing is. Throws Error if the encoding ends before.
  [[nodiscard]] virtual Tensor table(int64_t length) {
    (void)length;
    return {};
  }

  /// How many positions there are.
  [[nodiscard]] virtual int64_t longest() const { return std::numeric_limits<int64_t>::max(); }

  /// What acts within one self-attention, whose own parameters begin with `prefix`; null if nothing does.
  [[nodiscard]] virtual std::shared_ptr<const RelativePositions> within(Parameters& parameters,
                                                                        const std::string& prefix) {
    (void)parameters;
    (void)prefix;
    return nullptr;
  }
};

/// `prefix` names the parameters that a side has once ("src_position").
using PositionsFactory =
    std::function<std::unique_ptr<Positions>(Parameters&, const std::string& prefix, const PositionShape&)>;
Registry<PositionsFactory>& positions();

}  // namespace plumb
