// Position encodings: the interface and the registry of kinds. An encoding is added to the embeddings, or acts within
// self-attention.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "plumb/base/options.h"
#include "plumb/base/registry.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/position/relative.h"

namespace plumb {

/// Describes the position encoding of one side of a model.
struct PositionShape {
  int64_t d_model = 0;
  int64_t heads = 1;          // query heads
  int64_t max_positions = 0;  // for encodings of limited length
  bool causal = false;        // self-attention sees no later positions
  int64_t head_size = 0;      // 0: d_model/heads
  VariantOptions options{};   // of all encodings, by name

  [[nodiscard]] int64_t size() const { return head_size > 0 ? head_size : d_model / heads; }
};

class Positions {
 public:
  /// `within`: the part that acts within self-attention, if all layers share it.
  explicit Positions(std::shared_ptr<RelativePositions> within = nullptr) : within_(std::move(within)) {}
  virtual ~Positions() = default;

  /// Vectors of at least positions 0 … length − 1, (≥ length, d_model), to add to the embeddings; undefined if the
  /// encoding adds none. Throws Error if length exceeds `longest`.
  [[nodiscard]] virtual Tensor table(int64_t /*length*/) { return {}; }

  /// The largest number of positions supported.
  [[nodiscard]] virtual int64_t longest() const { return std::numeric_limits<int64_t>::max(); }

  /// The part that acts within one self-attention, whose parameters begin with `prefix`; null if there is none.
  [[nodiscard]] virtual std::shared_ptr<RelativePositions> within(Parameters& /*parameters*/,
                                                                  const std::string& /*prefix*/) {
    return within_;
  }

 private:
  std::shared_ptr<RelativePositions> within_;
};

/// Makes an encoding with its own options, which have been checked. `prefix` names the parameters that exist once per
/// side ("src_position").
using PositionsFactory = std::function<std::unique_ptr<Positions>(Parameters&, const std::string& prefix,
                                                                  const PositionShape&, const Options&)>;
Registry<PositionsFactory>& positions();

/// The encoding of this name. Throws Error on an unknown name, or options out of range.
std::unique_ptr<Positions> make_positions(const std::string& name, Parameters& parameters, const std::string& prefix,
                                          const PositionShape& shape);

}  // namespace plumb
