// The loss and the gradient of a step: over its batches, in micro-batches, and over the processes of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plumb/data/batches.h"
#include "plumb/model/flops.h"
#include "plumb/model/model.h"
#include "plumb/ops/number.h"
#include "plumb/parallel/gradient_exchange.h"
#include "plumb/parallel/group.h"
#include "plumb/task/task.h"
#include "plumb/train/config.h"
#include "plumb/train/inspection.h"

namespace plumb {

/// This process's part of the loss of a step, which the device may still be computing, and the gradient of all.
struct ComputedStep {
  std::vector<ops::Number> losses;  // parts of the mean over the labels of all processes
  std::vector<ops::Number> nlls;    // summed over labels
  double weight = 0;                // total weight of the labels of all processes
  int64_t tokens = 0;               // of this process; see Batch::tokens
  double flops = 0;                 // of this process; see model/flops.h
  std::vector<Tensor> gradient;     // one tensor per parameter, summed over the processes
};

/// Changes nothing but running averages of norms. Copies no parameters.
class StepComputation {
 public:
  /// All but the costs must outlive it. `costs`: of all examples of the training set.
  StepComputation(Model& model, const Task& task, const TrainConfig& config, const Dataset& train_set,
                  std::vector<ExampleCost> costs);

  /// From now on computes with these processes, all of which call this; first, alone.
  void join(const Group& group);

  /// Forward and backward pass of this process's micro-batches, one after another, as step `number`; its dropout masks
  /// depend on that. With an inspection, it watches the passes. Every process calls this with the same batches.
  [[nodiscard]] ComputedStep compute(std::span<const std::vector<int64_t>> batches, int64_t number,
                                     Inspection* inspection = nullptr) const;

  /// A dry pass: computes the batches of a plan that need the most memory, as step `number`, and leaves running
  /// averages as they were. Throws Error that names the batch if memory runs out.
  void try_largest(const std::vector<std::vector<int64_t>>& plan, int64_t number) const;

  /// Calls `work`, which computes these batches. Throws Error that names them and `when` if memory runs out.
  void within_memory(const std::string& when, std::span<const std::vector<int64_t>> batches,
                     const std::function<void()>& work) const;

  /// Everything that this process has exchanged with the others since it joined them.
  [[nodiscard]] ExchangeCost exchanged() const;

  [[nodiscard]] const std::vector<ExampleCost>& costs() const { return costs_; }

 private:
  [[nodiscard]] std::unique_ptr<GradientExchange> make_exchange(const Group& among) const;

  Model& model_;
  const Task& task_;
  const TrainConfig& config_;
  const Dataset& train_set_;
  std::vector<ExampleCost> costs_;
  FlopCounter flops_;
  Group group_;
  std::unique_ptr<GradientExchange> exchange_;  // with the other processes
  std::unique_ptr<GradientExchange> alone_;     // of this process, without any
};

}  // namespace plumb
