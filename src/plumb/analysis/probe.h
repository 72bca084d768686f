// A model at initialization, or with weights: signal, gradients, and beside each what theory says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/analysis/theory.h"
#include "plumb/io/safetensors.h"

namespace plumb {

struct ProbeOptions {
  std::vector<uint64_t> seeds = {1};  // of the initialization; with weights there is one measurement and no seed
  double label_smoothing = 0;         // of the loss whose gradient is measured
  at::ScalarType type = at::kFloat;
  std::string weights_origin = "weights";  // for error messages
  LossFunction loss = model_loss;
};

/// What one model gives.
struct Measurement {
  SignalProfile signal;
  GradientProfile gradient;
};
Measurement measure(Model& model, const std::vector<Batch>& batches, double label_smoothing = 0,
                    const LossFunction& loss = model_loss);

struct Range {
  double low = 0, high = 0;
};

/// A watched point over the measurements; its numbers are those of LayerPoint.
struct SignalReport {
  /// Bounds of mean_square: the paper's, and the same derivation for the model at hand.
  struct Lemma2 {
    Range paper, adapted;
  };

  ActivationPoint point;
  Interval mean_square, delta_at_0_1, epsilon_at_0_125, layer_norm_ratio;
  std::optional<Lemma2> theory;
};

/// The gradient of one feed-forward matrix over the measurements.
struct FeedForwardReport {
  LayerId layer;
  int matrix = 1;         // W1 or W2
  std::string parameter;  // its name
  Interval gradient_norm, batch_mean_gradient_norm;
};

/// What Xiong et al. 2020 say, and what was measured of it.
struct TheoryReport {
  /// Of the last layer's W2.
  struct Theorem1 {
    std::string parameter;
    double bound = 0;
    Interval norm, constant;  // constant: norm over bound
    ActivationPoint bounded_point;
    double probability = 0;  // of the bound, from the δ at that point
  };
  /// The line through log(batch_mean_gradient_norm) over the layers, of all measurements together.
  struct Slope {
    StackKind stack = StackKind::encoder;
    int matrix = 1;
    std::optional<double> predicted;
    LineFit fit;
    Interval over_seeds;  // the slopes of single measurements
  };

  theory::Placement placement = theory::Placement::other;
  std::vector<std::string> differs;  // in what the model is not the theory's
  std::optional<Theorem1> theorem_1;
  std::vector<Slope> layer_slopes;
};

/// Intervals are over the seeds.
struct ProbeReport {
  Interval loss, loss_label_smoothing, gradient_norm_total;
  NormByParameter gradient_norm;  // means
  std::vector<SignalReport> signal;
  std::vector<FeedForwardReport> feed_forward;
  TheoryReport theory;
  std::vector<uint64_t> seeds;  // empty for weights
  double label_smoothing = 0;

  /// Null if there is none.
  [[nodiscard]] const SignalReport* find(const ActivationPoint& point) const;
  [[nodiscard]] const FeedForwardReport* find(const LayerId& layer, int matrix) const;
};

/// Measurements of one configuration, one a seed, brought together. Throws Error if there are none.
ProbeReport summarize(const ModelConfig& config, const std::vector<Measurement>& measurements);

/// Builds, measures and summarizes. Throws Error if the weights do not fit, or on no seeds and no weights.
ProbeReport probe(const ModelConfig& config, const std::optional<NamedTensors>& weights,
                  const std::vector<Batch>& batches, const ProbeOptions& options);

}  // namespace plumb
