// Probes a model at initialization, or with given weights: activations, gradients, and the theory's predictions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/branch_stream.h"
#include "plumb/analysis/gradient.h"
#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/analysis/theory.h"
#include "plumb/io/safetensors.h"

namespace plumb {

struct ProbeOptions {
  std::vector<uint64_t> seeds = {1};  // of the initialization; not used with weights, which are measured once
  double label_smoothing = 0;         // of the loss whose gradient is measured
  at::ScalarType type = at::kFloat;
  std::string weights_origin = "weights";  // for error messages
  LossFunction loss = model_loss;
  Group group{};   // processes that share the batches; all get the report
  Group layers{};  // processes that compute the layers together; `group` are then those with the same part
};

/// The measurements of one model.
struct Measurement {
  SignalProfile signal;
  GradientProfile gradient;
  std::vector<BranchPoint> branches;
};
/// `division`: see measure_gradients.
Measurement measure(Model& model, const std::vector<Batch>& batches, double label_smoothing = 0,
                    const LossFunction& loss = model_loss, const Group& group = {},
                    const LayerDivision* division = nullptr);

struct Range {
  double low = 0, high = 0;
};

/// An activation over all measurements, with the numbers of LayerPoint.
struct SignalReport {
  /// Bounds of mean_square: from the paper, and from the same derivation for this model.
  struct Lemma2 {
    Range paper, adapted;
  };

  ActivationPoint point;
  Interval mean_square, delta_at_0_1, epsilon_at_0_125, layer_norm_ratio;
  std::optional<Lemma2> theory;
};

/// A sub-layer's branch over the measurements, and what theory predicts (branch_recursion.h), if it covers the model.
struct BranchReport {
  LayerId id;
  Interval ratio, similarity_before, similarity;
  std::optional<BranchPoint> predicted;
};

/// The gradient of one feed-forward matrix over the measurements.
struct FeedForwardReport {
  LayerId layer;
  int matrix = 1;         // W1 or W2
  std::string parameter;  // its name
  Interval gradient_norm, batch_mean_gradient_norm;
};

/// The predictions of Xiong et al. 2020, and the corresponding measurements.
struct TheoryReport {
  /// For the last layer's W2.
  struct Theorem1 {
    std::string parameter;
    double bound = 0;
    Interval norm, constant;  // constant: norm/bound
    ActivationPoint bounded_point;
    double probability = 0;  // of the bound, from the δ at that point
  };
  /// The line fitted to log(batch_mean_gradient_norm) by layer, over all measurements.
  struct Slope {
    StackKind stack = StackKind::encoder;
    int matrix = 1;
    std::optional<double> predicted;
    LineFit fit;
    Interval over_seeds;  // the slopes of single measurements
  };

  theory::Placement placement = theory::Placement::other;
  std::vector<std::string> differs;  // the theory's assumptions that the model violates
  std::optional<Theorem1> theorem_1;
  std::vector<Slope> layer_slopes;
};

/// Intervals are over the seeds.
struct ProbeReport {
  Interval loss, loss_label_smoothing, gradient_norm_total;
  NormByParameter gradient_norm;  // means
  std::vector<SignalReport> signal;
  std::vector<BranchReport> branches;
  std::vector<FeedForwardReport> feed_forward;
  TheoryReport theory;
  std::vector<uint64_t> seeds;  // empty if weights were given
  double label_smoothing = 0;

  /// Null if absent.
  [[nodiscard]] const SignalReport* find(const ActivationPoint& point) const;
  [[nodiscard]] const FeedForwardReport* find(const LayerId& layer, int matrix) const;
};

/// Combines the measurements of one configuration, one per seed. Throws Error if there are none.
ProbeReport summarize(const ModelConfig& config, const std::vector<Measurement>& measurements);

/// Builds, measures and summarizes. Throws Error if the weights do not match, or if there are neither seeds nor
/// weights.
ProbeReport probe(const ModelConfig& config, const std::optional<NamedTensors>& weights,
                  const std::vector<Batch>& batches, const ProbeOptions& options);

}  // namespace plumb
