// A model at initialization, or with weights: signal, gradients, and beside each what theory says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"

namespace plumb {

struct ProbeOptions {
  std::vector<uint64_t> seeds = {1};  // of the initialization; with weights there is one measurement and no seed
  double label_smoothing = 0;         // of the loss whose gradient is measured
  at::ScalarType type = at::kFloat;
  std::string weights_origin = "weights";  // for error messages
};

/// What one model gives, in one pass over the batches.
struct Measurement {
  SignalProfile signal;
  GradientProfile gradient;
};
Measurement measure(Model& model, const std::vector<Batch>& batches, double label_smoothing = 0);

/// The document "plumb.probe/1" (docs/formats/probe.md) of measurements of one configuration; one Measurement a seed.
/// Throws Error if there are none.
Json probe_document(const ModelConfig& config, const std::vector<Measurement>& measurements);

/// Builds, measures and documents. Throws Error if the weights do not fit, or on no seeds and no weights.
Json probe(const ModelConfig& config, const std::optional<NamedTensors>& weights, const std::vector<Batch>& batches,
           const ProbeOptions& options);

/// {"mean", "low", "high", "count"}; low and high are null where there is one value only.
Json to_json(const Interval& interval);

}  // namespace plumb
