// Finds where numbers stop being finite, by repeating a step with checks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/model/model.h"
#include "plumb/task/task.h"

namespace plumb {

/// Watches a forward and backward pass for the first values that are not finite.
class Inspection {
 public:
  Inspection();

  /// Watches the pass over this batch. If a step has several batches, the first finding counts.
  void watch(ForwardContext& context, const Batch& batch);

  /// The findings as members of a TroubleRecord: `parameter` (the first nonfinite one), `forward`, `examples`,
  /// `backward` and `gradient`, each absent if nothing was found; and `batch`, all examples watched. `gradients`: one
  /// per parameter.
  [[nodiscard]] Json findings(const Parameters& parameters, const std::vector<Tensor>& gradients) const;

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

/// Repeats the step twice: unchanged, to see whether its result is the same bit for bit, and with checks. Every process
/// of the group calls it. Returns members of a TroubleRecord: those of Inspection::findings, from the first process
/// that found something in its forward pass; `repeated`: "the same" or "otherwise", which points to the hardware or a
/// nondeterministic library; if "otherwise", `again`: the repeated loss and gradient norm; and `text`, all of it in
/// words. `buffers`: the model's buffers before the step, which are restored.
Json inspect_step(const TryStep& again, const StepTrial& first, Model& model, const std::vector<Tensor>& buffers,
                  const Group& group, const Task& task);

/// Copies the model's buffers, and restores them.
std::vector<Tensor> copies_of_buffers(const Parameters& parameters);
void restore_buffers(const Parameters& parameters, const std::vector<Tensor>& copies);

}  // namespace plumb
