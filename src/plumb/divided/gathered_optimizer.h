// An optimizer of whole matrices in a model whose layers are divided among processes (nn/layer_division.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plumb/divided/partial_optimizer.h"
#include "plumb/nn/layer_division.h"

namespace plumb {

/// Each parameter has an owner among the processes that have pieces of it. In a step, the owner receives the pieces of
/// its value and gradient, updates the whole, and sends the pieces back. It alone keeps the optimizer's state of it, so
/// that each process has about an equal part. For every optimizer that treats each parameter separately, the values
/// are those of one optimizer of whole parameters.
class GatheredOptimizer final : public PartialOptimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// `pieces`: the parameters that this process has after the division, which must outlive this. `layout`: the state of
  /// an optimizer of whole parameters; its values may be on `meta`.
  GatheredOptimizer(const Parameters& pieces, const LayerDivision& division, const Factory& factory,
                    const std::vector<StateTensor>& layout);

  [[nodiscard]] bool keeps_whole_state() const override { return true; }

  void share(const Group& group) override;
  /// The state is then that of all whole parameters, on the division's first process.
  void collect() override;

 private:
  void update(const OptimizerStep& step) override;
  void exchange(size_t parameter, const Tensor& x) override;
  void sum(const Tensor& x) override;
  [[nodiscard]] bool counts(size_t parameter) const override { return division_->counts(parameter); }

  const LayerDivision* division_;
  std::vector<int64_t> owners_;  // rank of the division's group, [parameter]
  Parameters whole_;             // the values of those that this process owns
  Group data_;
};

}  // namespace plumb
