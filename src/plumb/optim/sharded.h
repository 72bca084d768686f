// Optimizer state sharded across processes (ZeRO-1: Rajbhandari et al. 2020, arXiv 1910.02054).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/optim/optimizer.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Each of n processes keeps the state of about 1/n of the parameters: whole, consecutive ones. It updates these, and
/// then all processes exchange the new values. For every optimizer that treats each parameter separately, the values
/// match those of one optimizer of all parameters bit for bit.
class ShardedOptimizer final : public Optimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// At first, the same as `factory`'s optimizer of all parameters.
  ShardedOptimizer(const Parameters& parameters, Factory factory);

  /// Shards the state: keeps only that of this rank's share of the parameters. Every rank calls this at the same time.
  /// In a group of one, nothing changes.
  void share(const Group& group) override;

  /// Every rank calls this at the same time. Until the next step, state() of rank 0 is then that of all parameters, as
  /// in a single process.
  void collect() override;

  /// The state of all parameters. Throws Error if it is sharded and has not been collected.
  [[nodiscard]] NamedTensors state() const override;
  /// Takes this rank's share from the state of all parameters. Every rank calls this at the same time.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

  /// The number of elements of state in this process.
  [[nodiscard]] int64_t state_size() const;

  /// nullopt once the state is sharded.
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override;
  [[nodiscard]] Beginning beginning() const override { return own_->beginning(); }
  [[nodiscard]] bool acts_by_element() const override { return own_->acts_by_element(); }
  [[nodiscard]] bool averages_weights() const override { return own_->averages_weights(); }

 private:
  void update(const OptimizerStep& step) override;
  [[nodiscard]] size_t first() const { return begins_[static_cast<size_t>(group_.rank())]; }
  [[nodiscard]] size_t last() const { return begins_[static_cast<size_t>(group_.rank()) + 1]; }

  Parameters parameters_;
  Factory factory_;
  Group group_;
  std::vector<size_t> begins_;  // the first parameter of each rank, then the number of parameters
  std::unique_ptr<Optimizer> own_;
  struct Shape {
    std::string name;
    std::vector<int64_t> sizes;
    at::TensorOptions options;
  };
  std::vector<Shape> shapes_;  // of the state of all parameters
  NamedTensors all_;           // collected, on rank 0
};

/// The index of the parameter that a tensor of an optimizer's state, such as "m.encoder.layers.0.linear1.weight",
/// belongs to; nullopt for tensors with entries for several parameters.
std::optional<size_t> owner_of(const std::string& tensor, const Parameters& parameters);

/// The index of the first parameter of each of `ranks` processes, followed by the number of parameters. The shares are
/// consecutive, divided where the number of preceding elements is closest to an equal share.
std::vector<size_t> shares_of(const Parameters& parameters, int64_t ranks);

}  // namespace plumb
