// An optimizer whose state is sharded among processes: ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/divided/parameter_shards.h"
#include "plumb/nn/layer_division.h"
#include "plumb/optim/wrapped_optimizer.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Updates what this process owns of the parameters, and keeps the state of that alone; then all processes get the new
/// values. They are those of one optimizer of full parameters, bit for bit.
class ShardedOptimizer final : public WrappedOptimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// ZeRO-1, for every optimizer that treats each parameter separately: each rank of `data` owns whole parameters,
  /// about an equal part. `division`: of `parameters` among processes that have shards of each; null if an optimizer
  /// can treat the shards as parameters. Otherwise one of these processes owns the full parameter: in a step, it
  /// receives the shards of value and gradient, and sends those of the new value back. It must outlive this.
  ShardedOptimizer(const Parameters& parameters, const Group& data, const Factory& factory,
                   const LayerDivision* division = nullptr);

  /// ZeRO-2 and -3, for optimizers that act by element: each rank owns shards of all parameters, and steps take its
  /// shards of the gradients. The shards must outlive this.
  ShardedOptimizer(const ParameterShards& shards, const Factory& factory);

  /// Tensors that belong to parameters of other processes have no values: they are on `meta`. Those with an entry for
  /// each parameter are copies, where the entries of other processes are 0.
  [[nodiscard]] std::vector<StateTensor> state_tensors() const override;
  [[nodiscard]] Tensor full(const StateTensor& own) const override;
  /// Takes what this process owns from the state of full parameters, or its shards.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

 private:
  void update(const OptimizerStep& step) override;
  /// The parameters that a rank of `data` owns, as indices of full_.
  [[nodiscard]] std::vector<size_t> indices_of(int64_t rank) const;
  /// The state of inner(), with the indices of all parameters.
  [[nodiscard]] std::vector<StateTensor> own_state() const;

  const ParameterShards* shards_ = nullptr;
  const LayerDivision* division_ = nullptr;
  Group data_;
  std::vector<int64_t> owners_;      // rank of the division's group, [parameter]
  std::vector<size_t> candidates_;   // the parameters that this rank of the division's group owns, ascending
  Parameters full_;                  // their full values
  std::vector<size_t> begins_;       // the first candidate of each rank of `data`, then their number
  std::vector<size_t> own_;          // the parameters that inner() updates
  std::vector<StateTensor> layout_;  // of the state of full parameters, without their values
};

/// The index of the first parameter of each of `ranks` processes, followed by the number of parameters. The shares are
/// consecutive, divided where the number of preceding elements is closest to an equal share.
std::vector<size_t> split_evenly(const Parameters& parameters, int64_t ranks);

/// These parameters without values, on `meta`; of the shapes that they had before a division, unless that is null.
Parameters shapes_of(const Parameters& parameters, const LayerDivision* division = nullptr);

}  // namespace plumb
