// An optimizer of whole matrices in a model whose layers are divided among processes (nn/layer_division.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/nn/layer_division.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// Each parameter has an owner among the processes that have pieces of it. In a step, the owner receives the pieces of
/// its value and gradient, updates the whole, and sends the pieces back. It alone keeps the optimizer's state of it, so
/// that each process has about an equal part. For every optimizer that treats each parameter separately, the values
/// are those of one optimizer of whole parameters.
class GatheredOptimizer final : public Optimizer {
 public:
  using Factory = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

  /// `pieces`: the parameters that this process has after the division, which must outlive this. `factory` is also
  /// called for parameters without memory, to see what the state consists of.
  GatheredOptimizer(const Parameters& pieces, const LayerDivision& division, const Factory& factory);

  /// That of all whole parameters, on the division's first process and after collect(); empty on the others.
  [[nodiscard]] NamedTensors state() const override { return collected_; }
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

  [[nodiscard]] Beginning beginning() const override { return inner_->beginning(); }
  [[nodiscard]] bool keeps_whole_state() const override { return true; }

  void share(const Group& group) override;
  void collect() override;

 private:
  /// A tensor of the state of all whole parameters.
  struct Kept {
    std::string name;
    std::vector<int64_t> sizes;
    at::TensorOptions options;
    std::optional<size_t> parameter;  // that it belongs to; empty: to several, or to none
    std::vector<int64_t> entries;     // how many of its elements belong to each parameter, in their order; empty: none
  };

  void update(const OptimizerStep& step) override;
  [[nodiscard]] static std::vector<Kept> kept_by(const Factory& factory, const Parameters& pieces,
                                                 const LayerDivision& division);
  [[nodiscard]] Tensor collected(const Kept& kept, const Tensor& own) const;
  /// Calls `visit(parameter, begin, own_begin, count)` for the entries of each parameter that this process owns: where
  /// they begin in such a tensor, and in the same one of inner_.
  template <typename Visit>
  void visit_entries(const Kept& kept, const Visit& visit) const;

  Parameters pieces_;
  const LayerDivision* division_;
  std::vector<int64_t> owners_;  // rank of the division's group, [parameter]
  std::vector<size_t> own_;      // the parameters that this process owns, ascending
  Parameters whole_;             // their values
  std::vector<Kept> kept_;
  std::unique_ptr<Optimizer> inner_;  // of whole_
  Group data_;
  NamedTensors collected_;
};

}  // namespace plumb
