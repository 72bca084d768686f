// The loss and gradient of a step, over its batches, micro-batches and processes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plumb/divided/gradient_exchange.h"
#include "plumb/divided/mesh.h"
#include "plumb/divided/parameter_shards.h"
#include "plumb/divided/stage_computation.h"
#include "plumb/model/flops.h"
#include "plumb/model/model.h"
#include "plumb/nn/layer_division.h"
#include "plumb/ops/device_scalar.h"
#include "plumb/run/config.h"
#include "plumb/task/task.h"
#include "plumb/train/step_source.h"
#include "plumb/trouble/inspection.h"

namespace plumb {

/// This process's part of a step's loss, which the device may still be computing, and the gradient over all processes.
struct ComputedStep {
  std::vector<ops::DeviceScalar> losses;  // parts of the mean over the labels of all processes
  std::vector<ops::DeviceScalar> nlls;    // summed over labels
  double weight = 0;                      // total weight of the labels of all processes
  int64_t tokens = 0;                     // of this process; see Batch::tokens; of a pipeline, in the last stage
  double flops = 0;                       // of this process, on average if the model is divided; see model/flops.h
  std::vector<Tensor> gradient;  // one tensor per parameter, or this process's shard, summed over the processes
  CarriedState carried;          // of a stream: the initial state of the next step
};

/// Computes steps without changing anything but the running averages of norms, which are the same in all processes
/// after a step. Copies no parameters.
class StepComputation {
 public:
  /// All arguments must outlive it.
  StepComputation(Model& model, const Task& task, const TrainConfig& config, const StepSource& source);

  /// Computes together with these processes from now on; all of them call this. Initially, it computes alone.
  /// `division`: of the model among mesh.tensor and mesh.pipeline, null if every process has the whole model; `shards`:
  /// of its parameters among mesh.data, null if every process has the whole gradient. Both must outlive it. `stages`:
  /// of the model, if mesh.pipeline has several.
  void join(const Mesh& mesh, const LayerDivision* division = nullptr, ParameterShards* shards = nullptr,
            std::optional<PipelineSplit> stages = {});

  /// How the examples of a step are divided among the processes; `compute` takes the share of this division.
  [[nodiscard]] Division division() const { return {mesh_.data.rank(), mesh_.data.size(), config_.micro_batch_tokens}; }

  /// Forward and backward passes of this process's micro-batches, one after another, as step `number`, which determines
  /// the dropout masks. `carried`: of a stream, the state that the previous step left. The inspection, unless null,
  /// watches the passes. Every process calls this with its share of the same batches.
  [[nodiscard]] ComputedStep compute(const StepShare& share, int64_t number, const CarriedState& carried = {},
                                     Inspection* inspection = nullptr) const;

  /// A dry pass: computes the epoch's batches that need the most memory, as step `number`, and restores the running
  /// averages. Throws Error that names the batch if memory runs out.
  void try_largest(int64_t number) const;

  /// The sums over a split, shared among the processes (task/task.h).
  [[nodiscard]] Sums evaluate(const Dataset& dataset, int64_t batch_tokens) const;

  /// Calls `work`, which computes these batches. Throws Error that names them and `when` if memory runs out.
  void within_memory(const std::string& when, std::span<const std::vector<int64_t>> batches,
                     const std::function<void()>& work) const;

  /// The cost of everything that this process has exchanged with the others since it joined them.
  [[nodiscard]] ExchangeCost exchange_cost() const;

 private:
  /// The gradient of the micro-batches' losses over all processes of the pipeline.
  [[nodiscard]] std::vector<Tensor> staged_gradient(
      const StepShare& share, const std::function<ForwardContext(const MicroBatch&)>& context_of,
      const std::function<Tensor(const MicroBatch&, ForwardContext&)>& loss_of) const;
  /// Whether the parameters of a layer are there only while it is computed.
  [[nodiscard]] bool unshards() const { return shards_ != nullptr && shards_->shards_parameters(); }
  [[nodiscard]] std::unique_ptr<GradientExchange> make_exchange(const Group& among, const ShardLayout* shards) const;

  Model& model_;
  const Task& task_;
  const TrainConfig& config_;
  const StepSource& source_;
  FlopCounter flops_;
  Mesh mesh_;
  const LayerDivision* division_ = nullptr;
  ParameterShards* shards_ = nullptr;
  std::unique_ptr<StageComputation> stage_;     // null: this process computes all layers
  std::unique_ptr<GradientExchange> exchange_;  // with the other processes
  std::unique_ptr<GradientExchange> alone_;     // without exchange
};

}  // namespace plumb
