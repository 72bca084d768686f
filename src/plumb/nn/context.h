// What a forward pass is told besides its input: dropout, and who watches the activations.
#pragma once

#include <functional>
#include <utility>

#include "plumb/base/random.h"
#include "plumb/nn/layer_id.h"
#include "plumb/ops/dropout.h"

namespace plumb {

/// Sees activations as they arise: (where, tensor (tokens, width)).
using Observer = std::function<void(const ActivationPoint&, const Tensor&)>;

/// What a forward pass is for. Only norms over a batch and profiled schemes ask.
enum class Pass {
  evaluation,   // validation, decoding: norms over a batch use their running averages
  training,     // they use the batch, and update the averages
  measurement,  // the loss that training sees, without dropout: they use the batch and update nothing
  profiling     // the same, and schemes that are initialized by what flows through them (Admin) set their parameters
};

/// The sum of a tensor over processes, differentiable: for norms over a batch that is spread over them.
using ProcessSum = std::function<Tensor(const Tensor&)>;

/// One forward pass. Dropout sites are numbered in the order in which the pass meets them, so a mask depends on seed,
/// step, site and position alone.
class ForwardContext {
 public:
  /// No dropout: evaluation, decoding.
  ForwardContext() = default;
  /// No dropout.
  explicit ForwardContext(Pass pass) : pass_(pass) {}
  /// Training step `step` with dropout probability `p`.
  ForwardContext(double p, uint64_t seed, int64_t step) : pass_(Pass::training), p_(p), seed_(seed), step_(step) {}

  [[nodiscard]] Pass pass() const { return pass_; }

  /// `sum` is called where a statistic is over the tokens of all processes; without it there is one process.
  void exchange(ProcessSum sum) { sum_ = std::move(sum); }
  [[nodiscard]] bool exchanges() const { return static_cast<bool>(sum_); }
  [[nodiscard]] Tensor sum_over_processes(const Tensor& x) const { return sum_ ? sum_(x) : x; }

  /// The training step; 0 outside of training.
  [[nodiscard]] int64_t step() const { return step_; }

  void watch(Observer observer) { observer_ = std::move(observer); }
  [[nodiscard]] bool watched() const { return static_cast<bool>(observer_); }
  void show(const ActivationPoint& point, const Tensor& activation) const {
    if (observer_) observer_(point, activation);
  }

  Tensor dropout(const Tensor& x) { return ops::dropout(x, p_, next_key()); }
  Tensor add_dropout(const Tensor& residual, const Tensor& x) { return ops::add_dropout(residual, x, p_, next_key()); }

 private:
  ops::DropoutKey next_key() { return {seed_, stream_of("dropout") + (static_cast<uint64_t>(step_) << 16) + site_++}; }

  Pass pass_ = Pass::evaluation;
  double p_ = 0;
  uint64_t seed_ = 0;
  int64_t step_ = 0;
  uint64_t site_ = 0;
  Observer observer_;
  ProcessSum sum_;
};

}  // namespace plumb
