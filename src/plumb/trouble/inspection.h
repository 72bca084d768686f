// Finds where numbers stop being finite, by repeating a step with checks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/model/model.h"
#include "plumb/task/task.h"
#include "plumb/trouble/findings.h"

namespace plumb {

/// Watches a forward and backward pass for the first values that are not finite.
class Inspection {
 public:
  Inspection();

  /// Watches the pass over this batch. If a step has several batches, the first finding counts.
  void watch(ForwardContext& context, const Batch& batch);

  /// What was found. `gradients`: one per parameter.
  [[nodiscard]] Findings findings(const Parameters& parameters, const std::vector<Tensor>& gradients) const;

 private:
  struct Found;
  std::shared_ptr<Found> found_;  // shared with the hooks in the graph
};

/// The numbers and gradients of a step that is not applied.
struct StepTrial {
  double loss = 0;
  double gradient_norm = 0;
  std::vector<Tensor> gradients;
};

/// Computes a step again from the same parameters without applying it; the inspection, unless null, watches the passes.
using TryStep = std::function<StepTrial(Inspection*)>;

/// A step that was repeated with checks.
struct InspectedStep {
  Findings findings;
  std::string text;  // in words
};

/// Repeats the step twice: unchanged, to see whether its result is the same bit for bit, and with checks. Every process
/// of the group calls it. The findings are those of the first process that found something in its forward pass.
/// `parameters`: of the model, or the pieces of this process; `buffers`: the model's buffers before the step, which are
/// restored.
InspectedStep inspect_step(const TryStep& again, const StepTrial& first, const Parameters& parameters,
                           const std::vector<Tensor>& buffers, const Group& group, const Task& task);

/// Copies the model's buffers, and restores them.
std::vector<Tensor> copies_of_buffers(const Parameters& parameters);
void restore_buffers(const Parameters& parameters, const std::vector<Tensor>& copies);

}  // namespace plumb
