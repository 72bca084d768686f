// Optimizers: the interface and the registry of kinds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/io/safetensors.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// What a step does to one parameter.
struct ParameterStep {
  double learning_rate = 0;
  double weight_decay = 0;
  bool frozen = false;  // the parameter and the optimizer's state for it do not change

  bool operator==(const ParameterStep&) const = default;
};

/// The input of one step: gradients and settings in the order of the parameters.
struct OptimizerStep {
  const std::vector<Tensor>& gradients;  // contiguous, of the parameters' shapes
  std::span<const ParameterStep> parameters;
  double gradient_scale;  // multiplies every gradient, for clipping
};

/// An optimizer's last step seen as preconditioned gradient descent, θ ← θ − η·P⁻¹·m, where m is a running combination
/// of gradients and P is diagonal.
struct Preconditioning {
  /// P, one tensor per parameter in their order and of their shapes; ∞ where no step has been taken. Empty: P = 1.
  std::vector<Tensor> diagonal;
  /// The P of an element whose gradients so far were all 0, which is ε in P's units: one per parameter. 0 if there is
  /// no such ε; empty if `diagonal` is.
  std::vector<double> floor;
  /// With P and η held fixed, a quadratic loss with Hessian H is descended without oscillations that grow if
  /// η·λ_max(P⁻¹H) stays below this number (Cohen et al. 2021, arXiv 2103.00065, and 2022, arXiv 2207.14484).
  double stable_product = 0;
};

/// How an optimizer's first steps differ from those that follow, all with the same gradient.
struct Beginning {
  int64_t preparatory_steps = 0;  // first steps that leave some parameters as they are, and only prepare the state
  double momentum_gain = 1;       // what steps grow to, in units of the first one after the preparatory ones
};

/// A tensor of an optimizer's state. It shares the optimizer's memory.
struct StateTensor {
  std::string kind{};                 // such as "m"
  std::optional<size_t> parameter{};  // the index of the one that it belongs to
  /// Otherwise the parameters to which its elements belong, one each and ascending; nullopt: it is of all together.
  std::optional<std::vector<size_t>> entries{};
  Tensor value{};
};

/// "m.encoder.layers.0.linear1.weight", or the kind alone if the tensor belongs to no single parameter. Without a kind,
/// the tensor is the parameter.
std::string name_of(const StateTensor& tensor, const Parameters& parameters);
NamedTensors named(const std::vector<StateTensor>& tensors, const Parameters& parameters);
/// The reverse, of values of parameters and buffers.
std::vector<StateTensor> state_of(const NamedTensors& values, const Parameters& parameters);

/// Updates parameters from their gradients.
class Optimizer {
 public:
  /// Shares the parameters' values.
  explicit Optimizer(const Parameters& parameters) : parameters_(parameters) {}
  virtual ~Optimizer() = default;

  /// One step. `gradients` and `settings` have one entry per parameter, in the parameters' order; gradients have their
  /// shapes, as returned by plumb::gradients(). Throws Error otherwise.
  void step(const std::vector<Tensor>& gradients, std::span<const ParameterStep> settings, double gradient_scale = 1);

  /// The same learning rate for every parameter, and no weight decay.
  void step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale = 1);

  /// Everything that a resumed run needs to continue bit for bit, with the same kinds and shapes at every step.
  [[nodiscard]] virtual std::vector<StateTensor> state_tensors() const { return declared_state_; }
  /// The same by name, as files contain it; and the reverse. A single number may stand for one of each parameter.
  /// load_state throws Error, naming `origin`, if a tensor is missing or has the wrong shape.
  [[nodiscard]] NamedTensors state() const { return named(state_tensors(), parameters_); }
  virtual void load_state(const NamedTensors& tensors, const std::string& origin);

  /// The last step as preconditioned gradient descent, without weight decay; nullopt before the first step, and for
  /// optimizers that do not have this form.
  [[nodiscard]] virtual std::optional<Preconditioning> preconditioning() const { return std::nullopt; }

  [[nodiscard]] virtual Beginning beginning() const { return {}; }

  /// Whether the learning rate is the share of a matrix's size by which a step changes it.
  [[nodiscard]] virtual bool scales_by_weights() const { return false; }

  /// Whether the optimizer averages the weights itself. If so, take gradients at the parameters, but evaluate and save
  /// evaluation_weights(). For all other optimizers, the parameters serve both purposes.
  [[nodiscard]] virtual bool averages_weights() const { return false; }
  /// A vector of all elements of all parameters, in their order; undefined unless averages_weights().
  [[nodiscard]] virtual Tensor evaluation_weights() const { return {}; }

  /// Receives the mean negative log-likelihood of a validation of the evaluation weights after the steps so far.
  /// Optimizers that base decisions on it override this, and keep what they remember in their state.
  virtual void see_validation(double /*nll*/) {}

  /// Whether weight decay enters the direction of a step, instead of being subtracted from the parameter separately.
  [[nodiscard]] virtual bool decay_is_in_direction() const { return false; }

  /// Whether the new value of an element depends on that element's gradients and state alone, and on counts that are
  /// equal for all elements of a parameter. Then shards of a parameter can be updated by different processes.
  [[nodiscard]] virtual bool acts_by_element() const { return false; }

  /// The full tensor of which this process has `own`, one of state_tensors(): on rank 0 of the processes that shard the
  /// state (divided/sharded_optimizer.h), which all call it; anything on the others. May share the optimizer's memory.
  [[nodiscard]] virtual Tensor full(const StateTensor& own) const { return own.value; }

 protected:
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  /// Where an optimizer that is made appends its state (ParameterSet::append): tensors that it changes in place.
  [[nodiscard]] std::vector<StateTensor>& declared_state() { return declared_state_; }

 private:
  /// Runs without a graph; gradients and settings have been checked.
  virtual void update(const OptimizerStep& step) = 0;

  Parameters parameters_;
  std::vector<StateTensor> declared_state_;
};

/// Makes an optimizer of these parameters. Options have been checked.
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(const Parameters&, const Options&)>;
Registry<OptimizerFactory>& optimizers();

/// Registers an optimizer that is constructed from the parameters and its own options.
template <typename Kind, typename OwnOptions>
bool add_optimizer(const std::string& name, std::string summary, std::string reference) {
  const auto make = [](const Parameters& parameters, const Options& options) {
    return std::make_unique<Kind>(parameters, options.as<OwnOptions>());
  };
  return optimizers().add(name, std::move(summary), std::move(reference), make, Options(OwnOptions()));
}

/// The optimizer of this name, with its options from `options`, or its defaults. Throws Error on an unknown name or
/// options out of range.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Parameters& parameters,
                                          const VariantOptions& options = {});

}  // namespace plumb
