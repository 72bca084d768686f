// How far each step moves each sub-layer: estimated from some of its elements, so that it costs next to nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/nn/parameters.h"
#include "plumb/ops/number.h"

namespace plumb {

/// ‖Δθ‖ of every sub-layer, of what else belongs to a layer (norms), and of each parameter outside of layers. A group
/// of n elements is estimated from s ≤ `samples` of them, always the same ones, one drawn from each of s equal parts:
/// ‖Δθ‖² ≈ n/s·Σ over these of (Δθ)²; exact if n ≤ samples. The cost is thus bounded for a model of any size.
class UpdateNorms {
 public:
  explicit UpdateNorms(const Parameters& parameters, int64_t samples = 4096);

  /// The groups in the order of the model: "encoder.layers.0.self_attention", "encoder.layers.0", "src_embed.weight".
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  /// Remembers the parameters as they are before the step.
  void before_step();

  /// The estimates of ‖Δθ‖² since then, one for each group, which a device may still be computing.
  [[nodiscard]] std::vector<ops::Number> square_norms() const;

 private:
  [[nodiscard]] Tensor sample() const;

  Tensor flat_;     // the parameters, (count)
  Tensor places_;   // (groups·width): positions in flat_
  Tensor weights_;  // (groups, width): n/s, or 0 for positions that only fill a row
  Tensor before_;   // (groups·width)
  std::vector<std::string> names_;
};

}  // namespace plumb
