// The base of optimizers whose state is divided among processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/optim/wrapped_optimizer.h"

namespace plumb {

/// inner() has the state of some of the parameters, and other processes have that of the rest. The state that is saved
/// and loaded is that of all parameters.
class PartialOptimizer : public WrappedOptimizer {
 public:
  /// What has been collected; empty on processes that do not keep it.
  [[nodiscard]] std::vector<StateTensor> state_tensors() const override { return collected_; }
  /// Takes this process's part from the state of all parameters.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

 protected:
  /// To be completed by the two functions below.
  explicit PartialOptimizer(const Parameters& parameters) : WrappedOptimizer(parameters, nullptr) {}

  /// `full`: the state of an optimizer of all parameters; its values may be on `meta`, and are not kept.
  void set_layout(const std::vector<StateTensor>& full);
  /// From now on, `inner` updates the parameters with the indices `own`, which ascend.
  void set_part(std::vector<size_t> own, std::unique_ptr<Optimizer> inner);

  [[nodiscard]] const std::vector<size_t>& own() const { return own_; }

  /// Puts the state of all parameters together; if `keeps`, state_tensors() then returns it.
  void collect_full(bool keeps);
  void drop_collected() { collected_.clear(); }

 private:
  /// Makes x, a tensor of a parameter's state, that of the process that updates the parameter, on those that keep it.
  virtual void exchange(size_t parameter, const Tensor& x) = 0;
  /// Replaces x by its sum over the processes that have a part, on those that keep it.
  virtual void sum(const Tensor& x) = 0;
  /// Whether sums count what this process has of a parameter's state.
  [[nodiscard]] virtual bool counts(size_t /*parameter*/) const { return true; }

  /// The state of inner(), with the indices of all parameters.
  [[nodiscard]] std::vector<StateTensor> own_state() const;

  std::vector<StateTensor> layout_;  // of the state of all parameters, on `meta`
  std::vector<size_t> own_;
  std::vector<StateTensor> collected_;
};

}  // namespace plumb
