// Where numbers stop being finite: a step that is taken again with checks on.
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

  /// Watches this pass over this batch. If a step has several, the first finding counts.
  void watch(ForwardContext& context, const Batch& batch);

  /// What was found, in the words of a record: `parameter` (which itself is not finite), `forward`, `examples`,
  /// `backward` and `gradient`; each is absent if nothing was found. gradients: of all parameters.
  [[nodiscard]] Json findings(const Parameters& parameters, const std::vector<Tensor>& gradients) const;

 private:
  struct Found;
  std::shared_ptr<Found> found_;  // shared with the hooks in the graph
};

/// A step's numbers and gradients, not applied.
struct StepTrial {
  double loss = 0;
  double gradient_norm = 0;
  std::vector<Tensor> gradients;
};

/// Takes a step once more from the same parameters, without applying it; with an inspection, it watches the passes.
using TryStep = std::function<StepTrial(Inspection*)>;

/// Takes the step again twice: as it was, to see whether it comes out the same bit for bit; and with checks on. Every
/// process of the group calls it. Returns the members of a record: those of Inspection::findings, of the first process
/// that found something; `repeated`: "the same" or "otherwise", in which case the hardware or a library that is not
/// deterministic is to blame; and `text`, all of it in words. `buffers` are the model's, as they were before the step;
/// they are restored.
Json inspect_step(const TryStep& again, const StepTrial& first, Model& model, const std::vector<Tensor>& buffers,
                  const Group& group, const Task& task);

/// Copies of the model's buffers, and the reverse.
std::vector<Tensor> copies_of_buffers(const Parameters& parameters);
void restore_buffers(const Parameters& parameters, const std::vector<Tensor>& copies);

}  // namespace plumb
