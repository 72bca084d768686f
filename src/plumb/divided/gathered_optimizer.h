// An optimizer of whole matrices in a model whose layers are divided among processes (nn/layer_division.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plumb/divided/partial_optimizer.h"
#include "plumb/nn/layer_division.h"

namespace plumb {

/// Each parameter has an owner among the processes that have shards of it. In a step, the owner receives the shards of
/// its value and gradient, updates the full value, and sends the shards back. It alone keeps the optimizer's state of
/// it, so that each process has about an equal part. For every optimizer that treats each parameter separately, the
/// values are those of one optimizer of full parameters.
class GatheredOptimizer final : public PartialOptimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// `shards`: the parameters that this process has after the division, which must outlive this. `layout`: the state of
  /// an optimizer of full parameters; its values may be on `meta`.
  GatheredOptimizer(const Parameters& shards, const LayerDivision& division, const Factory& factory,
                    const std::vector<StateTensor>& layout);

  [[nodiscard]] bool keeps_full_state() const override { return true; }

  void distribute(const Group& group) override;
  /// The state is then that of all full parameters, on the division's first process.
  void collect() override;

 private:
  void update(const OptimizerStep& step) override;
  void exchange(size_t parameter, const Tensor& x) override;
  void sum(const Tensor& x) override;
  [[nodiscard]] bool counts(size_t parameter) const override { return division_->counts(parameter); }

  const LayerDivision* division_;
  std::vector<int64_t> owners_;  // rank of the division's group, [parameter]
  Parameters full_;              // the values of those that this process owns
  Group data_;
};

}  // namespace plumb
