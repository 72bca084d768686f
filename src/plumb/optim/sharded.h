// Optimizer state shared out among processes (ZeRO-1: Rajbhandari et al. 2020, arXiv 1910.02054).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/optim/optimizer.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Each of n processes keeps the state of about 1/n of the parameters: whole, consecutive ones. It updates these, and
/// then all processes exchange the new values. The values are those of an optimizer of all parameters, bit for bit, for
/// every optimizer that treats each parameter by itself.
class ShardedOptimizer final : public Optimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// First, an optimizer of all parameters, like that of `factory`.
  ShardedOptimizer(const Parameters& parameters, Factory factory);

  /// From now on keeps the state of this rank's share only, taken from the state of all parameters. In a group of one,
  /// nothing changes.
  void share(const Group& group);

  /// Every rank calls this at the same time: afterwards, and until the next step, state() of rank 0 is that of all
  /// parameters, as one process would have it.
  void collect();

  /// That of all parameters. Throws Error if it has been shared out and not collected.
  [[nodiscard]] NamedTensors state() const override;
  /// Takes its share from the state of all parameters.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

  /// Elements of state in this process.
  [[nodiscard]] int64_t state_size() const;

  /// Empty once the state is shared out.
  [[nodiscard]] std::optional<Preconditioning> preconditioning() const override;

 private:
  void update(const OptimizerStep& step) override;
  [[nodiscard]] size_t first() const { return begins_[static_cast<size_t>(group_.rank())]; }
  [[nodiscard]] size_t last() const { return begins_[static_cast<size_t>(group_.rank()) + 1]; }

  Parameters parameters_;
  Factory factory_;
  Group group_;
  std::vector<size_t> begins_;  // the first parameter of each rank, and the number of parameters
  std::unique_ptr<Optimizer> own_;
  struct Shape {
    std::string name;
    std::vector<int64_t> sizes;
    at::TensorOptions options;
  };
  std::vector<Shape> shapes_;  // of the state of all parameters
  NamedTensors all_;           // collected, on rank 0
};

/// Where the shares of `ranks` processes begin, with the number of parameters at the end: consecutive ones, divided
/// where the elements before come closest to an equal share.
std::vector<size_t> shares_of(const Parameters& parameters, int64_t ranks);

}  // namespace plumb
