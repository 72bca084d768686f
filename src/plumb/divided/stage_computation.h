// What one stage of a pipeline computes of a step, in the order of a schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/divided/pipeline_schedule.h"
#include "plumb/divided/pipeline_split.h"
#include "plumb/divided/stage_links.h"

namespace plumb {

/// A stage keeps the graph of a micro-batch from its forward pass to its backward pass, and what it has sent until it
/// has arrived. Every rank of the pipeline calls the same functions for the same batches.
class StageComputation {
 public:
  /// The ranks of `pipeline` are the stages of the model, which must outlive this. `schedule`: see
  /// make_pipeline_schedule.
  StageComputation(Model& model, const Group& pipeline, PipelineSplit stages, std::string schedule, int64_t chunks);

  /// The gradient of the sum of the losses of a step's micro-batches, one tensor per parameter, as far as it depends on
  /// this stage's layers. `context_of` makes the context of a pass of micro-batch i; in the last stage, `loss_of`
  /// computes the loss of micro-batch i in this context.
  [[nodiscard]] std::vector<Tensor> gradient(const std::vector<const Batch*>& micro_batches,
                                             const std::function<ForwardContext(size_t)>& context_of,
                                             const std::function<Tensor(size_t, ForwardContext&)>& loss_of);

  /// A forward pass without a graph. In the last stage, `finish` computes the rest from the model's last layers on, in
  /// this context.
  void forward(const Batch& batch, ForwardContext& context, const std::function<void()>& finish);

  /// Returns when all that this stage has sent has arrived.
  void wait() { links_.wait_for_lines(); }

  [[nodiscard]] ExchangeCost cost() const { return links_.cost(); }

 private:
  using Pass = StageTask::Pass;

  /// A micro-batch between its passes through a part of the layers.
  struct Activations {
    std::vector<Tensor> inputs;   // leaves
    std::vector<Tensor> outputs;  // with a graph
  };

  /// What the part before has sent for this batch.
  [[nodiscard]] LayerRange receive_input(int64_t part, const Batch& batch);
  void backward(int64_t part, const Batch& batch, Activations activations, std::vector<Tensor>& gradient);

  Model& model_;
  Group pipeline_;
  PipelineSplit stages_;
  std::string schedule_;
  int64_t chunks_;
  StageLinks links_;
};

}  // namespace plumb
