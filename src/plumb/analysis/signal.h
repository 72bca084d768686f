// The magnitude of activations at each observed point of the stream.
#pragma once

#include <map>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// One observed point, over all tokens of all batches.
struct LayerPoint {
  ActivationPoint point;
  double mean_square = 0;   // E‖x‖² of a token's vector
  double delta_at_0_1 = 0;  // ‖x‖² is (0.1, δ)-bounded and (ε, 0.125)-bounded, see statistics.h
  double epsilon_at_0_125 = 0;
  /// E of ‖J_LN(x)‖₂ · ‖x‖/√d, which is O(1) by Lemma 3 (Xiong et al. 2020): a LayerNorm with gain 1 and eps 0 at this
  /// point has ‖J‖₂ = √d/‖x − mean(x)‖. Infinite if a token's vector is constant, NaN if it is 0.
  double layer_norm_ratio = 0;
};

struct SignalProfile {
  std::vector<LayerPoint> points;  // in the order of a forward pass

  /// Null if the model has no such point.
  [[nodiscard]] const LayerPoint* find(const ActivationPoint& point) const;
  /// Throws Error naming the closest point.
  [[nodiscard]] const LayerPoint& at(const ActivationPoint& point) const;
};

/// Collects the activations of any number of forward passes and returns their profile.
class SignalMeter {
 public:
  void see(const ActivationPoint& point, const Tensor& activation);
  /// Merges the samples of all processes of a group, in order of rank: all then have the same profile. If
  /// share_of_batches divided the batches, it equals the profile of one process with all of them.
  void add_all(const Group& group);
  [[nodiscard]] SignalProfile profile() const;

 private:
  struct Samples {
    ActivationPoint point;
    std::vector<double> square;  // ‖x‖² per token
    double ratio_sum = 0;
  };
  std::vector<Samples> points_;
  std::map<ActivationPoint, size_t> index_;
};

/// Forward passes without dropout and without a graph.
SignalProfile measure_signal(Model& model, const std::vector<Batch>& batches);

}  // namespace plumb
