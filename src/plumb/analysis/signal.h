// The size of the activations at every watched point of the stream.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// One watched point, over all tokens of all batches.
struct LayerPoint {
  std::string name;         // as observers get it: "encoder.layers.3.feed_forward.sum"
  int64_t layer = 0;        // from 1, as papers count (the name counts from 0); 0: the input or result of a stack
  double mean_square = 0;   // E‖x‖² of a token's vector
  double delta_at_0_1 = 0;  // ‖x‖² is (0.1, δ)-bounded and (ε, 0.125)-bounded, see statistics.h
  double epsilon_at_0_125 = 0;
  /// E of ‖J_LN(x)‖₂ · ‖x‖/√d, which Lemma 3 (Xiong et al. 2020) says is O(1): a LayerNorm with gain 1 and eps 0 put
  /// here has ‖J‖₂ = √d/‖x − mean(x)‖. NaN if a token's vector is constant.
  double layer_norm_ratio = 0;
};

struct SignalProfile {
  std::vector<LayerPoint> points;  // in the order in which a forward pass meets them

  /// Throws Error naming the nearest point.
  [[nodiscard]] const LayerPoint& at(const std::string& name) const;
};

/// Collects what a forward pass shows; to be asked for the profile after any number of passes.
class SignalMeter {
 public:
  void see(const std::string& name, const Tensor& activation);
  [[nodiscard]] SignalProfile profile() const;

 private:
  struct Samples {
    std::string name;
    std::vector<double> square;  // ‖x‖² per token
    double ratio_sum = 0;
  };
  std::vector<Samples> points_;
  std::map<std::string, size_t> index_;
};

/// Forward passes without dropout and without a graph.
SignalProfile measure_signal(Model& model, const std::vector<Batch>& batches);

}  // namespace plumb
