// Why a run diverged: sentences about what was measured, and what to try. The measurements are files of their own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/train/trouble_judge.h"
#include "plumb/train/watch.h"

namespace plumb {

/// A run at its end: the parameters as they were before the step that was not taken.
struct DivergedRun {
  const WatchedRun& run;  // its batches: the first examples of the training set
  const StepNumbers& numbers;
  const StepJudgment& judgment;
  const std::vector<Tensor>& gradients;  // of that step
  const TroubleJudge& judge;
  const std::vector<WatchRecord>& watched;  // what the watches of the run have measured

  /// Whether all parameters and the loss of these batches can be worked with.
  bool finite = false;

  /// The last value that a watch has measured: last("curvature", "preconditioned"), or null.
  [[nodiscard]] Json last(const std::string& watch, const std::string& name, int64_t* step = nullptr) const;
};

/// One finding: what was measured, and, if it is a reason for divergence, what to try.
struct Finding {
  std::string text;
  std::string advice;
};

/// A measurement that may explain a divergence registers itself, as watches do. It leaves the model as it is, and
/// returns nothing if it has nothing to say. Throws Error where it cannot measure.
using Diagnosis = std::function<std::vector<Finding>(const DivergedRun&)>;
Registry<Diagnosis>& diagnoses();

/// Whether the parameters, and the loss of the run's batches without dropout, are finite.
bool finite_on(const WatchedRun& run);

/// All of them, in sentences: what rose first, then those that state a reason, the others, and at last what to try. A
/// measurement that fails is left out.
std::vector<std::string> diagnose(const DivergedRun& diverged);

}  // namespace plumb
