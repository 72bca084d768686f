// Measurements at initialization: how gradients flow back, how the first update changes the logits, the learning rate
// above which it raises the loss, and the curvature.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/backward_gain.h"
#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/curvature/split.h"
#include "plumb/analysis/first_step.h"

namespace plumb {

struct InitializationOptions {
  bool gains = false;
  /// Optimizers whose first step is measured, with their default options.
  std::vector<std::string> first_steps{};
  int64_t curvature_steps = 0;        // of Lanczos, for all parameters; 0: no curvature
  int64_t layer_curvature_steps = 0;  // the same for each layer's block
  double label_smoothing = 0;
  uint64_t seed = 1;  // of Lanczos's start vectors
  Group group{};      // processes that share the batches; all get the results, but only rank 0 the curvature

  [[nodiscard]] bool any() const { return gains || !first_steps.empty() || curvature_steps > 0; }
};

/// The first step of one optimizer.
struct FirstStep {
  std::string optimizer;
  LogitChanges logits;
  std::optional<CriticalRate> critical;
  double momentum_gain = 1;  // how many times as long steps become while the gradient stays (Beginning)
};
void describe(Fields& field, FirstStep& step);

/// The requested measurements of one model.
struct InitializationMeasurement {
  std::optional<BackwardGains> gains;
  std::vector<FirstStep> first_steps;
  std::optional<CurvatureSplit> curvature;
};
InitializationMeasurement measure_initialization(Model& model, const std::vector<Batch>& batches,
                                                 const InitializationOptions& options);

/// The logit changes and the critical learning rate of one optimizer's first step on batches, which the processes of a
/// group share. The step includes Model::constrain.
FirstStep measure_first_step(Model& model, const std::vector<Batch>& batches, const std::string& optimizer,
                             const VariantOptions& optimizer_options, double label_smoothing, const Group& group = {});

/// The same over several initializations.
struct FirstStepReport {
  std::string optimizer;
  LogitChangesReport logits;
  Interval critical_rate;    // the geometric mean, over the models in which one was found
  int64_t without_rate = 0;  // models in which none was found
  double passes = 0;         // mean number of forward passes of the successful searches
  double momentum_gain = 1;  // as in FirstStep
};
struct InitializationReport {
  std::optional<BackwardGainReport> gains;
  std::vector<FirstStepReport> first_steps;
  std::optional<CurvatureSplitReport> curvature;
};

/// Throws Error if there are no measurements.
FirstStepReport summarize(const std::vector<FirstStep>& measurements);
InitializationReport summarize(const std::vector<InitializationMeasurement>& measurements);

}  // namespace plumb
