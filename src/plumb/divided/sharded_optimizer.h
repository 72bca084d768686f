// Optimizer state sharded across processes (ZeRO-1: Rajbhandari et al. 2020, arXiv 1910.02054).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plumb/divided/partial_optimizer.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Each of n processes keeps the state of about 1/n of the parameters: whole, consecutive ones. It updates these, and
/// then all processes exchange the new values. For every optimizer that treats each parameter separately, the values
/// match those of one optimizer of all parameters bit for bit.
class ShardedOptimizer final : public PartialOptimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// At first, the same as `factory`'s optimizer of all parameters.
  ShardedOptimizer(const Parameters& parameters, Factory factory);

  /// Shards the state: keeps only that of this rank's share of the parameters. Every rank calls this at the same time.
  /// In a group of one, nothing changes.
  void distribute(const Group& group) override;

  /// Every rank calls this at the same time. Until the next step, the state of rank 0 is then that of all parameters,
  /// as in a single process.
  void collect() override;

  /// Throws Error if the state is sharded and has not been collected.
  [[nodiscard]] std::vector<StateTensor> state_tensors() const override;

  /// The number of elements of state in this process.
  [[nodiscard]] int64_t state_size() const;

  /// nullopt once the state is sharded.
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override;

 private:
  /// The indices of those that a rank updates.
  [[nodiscard]] std::vector<size_t> parameters_of(int64_t rank) const;
  void update(const OptimizerStep& step) override;
  void exchange(size_t parameter, const Tensor& x) override;
  void sum(const Tensor& x) override { group_.sum(x); }

  Factory factory_;
  Group group_;
  std::vector<size_t> begins_;  // the first parameter of each rank, then the number of parameters
};

/// The index of the first parameter of each of `ranks` processes, followed by the number of parameters. The shares are
/// consecutive, divided where the number of preceding elements is closest to an equal share.
std::vector<size_t> split_evenly(const Parameters& parameters, int64_t ranks);

}  // namespace plumb
