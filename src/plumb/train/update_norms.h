// The norm of each sub-layer's update, estimated from a sample of its elements at negligible cost.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/divided/parameter_shards.h"
#include "plumb/nn/layer_division.h"
#include "plumb/nn/parameters.h"
#include "plumb/ops/device_scalar.h"
#include "plumb/trouble/trouble_judge.h"

namespace plumb {

/// ‖Δθ‖ of these groups: each sub-layer, the other parameters of each layer (norms), and each parameter outside of
/// layers. A group of n elements is estimated from a fixed sample of s = min(n, samples), one drawn from each of s
/// equal parts: ‖Δθ‖² ≈ n/s·Σ (Δθ)² over the sample; exact if n ≤ samples. The cost per group does not grow with the
/// model.
class UpdateNorms {
 public:
  /// `division`: of the model, whose processes then have to sum the estimates; null if this one has the whole model.
  /// `shards`: the same for parameters whose values are sharded; null if they are not. The sample is the same.
  static constexpr int64_t kSamples = 4096;
  explicit UpdateNorms(const Parameters& parameters, int64_t samples = kSamples,
                       const LayerDivision* division = nullptr, const ParameterShards* shards = nullptr);

  /// The groups in the order of the model: "encoder.layers.0.self_attention", "encoder.layers.0", "src_embed.weight".
  [[nodiscard]] const std::vector<UpdateSeries>& series() const { return series_; }

  /// Copies the sampled parameters before a step.
  void before_step();

  /// The estimates of ‖Δθ‖² since then, one per group, which the device may still be computing.
  [[nodiscard]] std::vector<ops::DeviceScalar> square_norms() const;

 private:
  [[nodiscard]] Tensor sample() const;

  Tensor flat_;     // the parameters, (count), or this process's shards
  Tensor places_;   // (groups·width): positions in flat_
  Tensor weights_;  // (groups, width): n/s, or 0 for padding; divided by the processes that have the element
  Tensor before_;   // (groups·width)
  std::vector<UpdateSeries> series_;
};

}  // namespace plumb
