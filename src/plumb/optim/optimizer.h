// Optimizers: the interface and the registry of its kinds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/io/safetensors.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// What the optimizers can be told; each reads what it knows.
struct OptimizerOptions {
  double beta1 = 0.9;         // adam
  double beta2 = 0.98;        // adam
  double eps = 1e-9;          // adam
  double momentum = 0.9;      // sgd
  double weight_decay = 0.0;  // of every parameter
};

/// Changes parameters by their gradients. What it remembers lies in flat vectors like Parameters::flat().
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step. `gradients`: one tensor a parameter, in their order and of their shapes, as plumb::gradients() gives
  /// them; each is multiplied by `gradient_scale` (for clipping) on the way.
  virtual void step(const std::vector<Tensor>& gradients, double learning_rate, double gradient_scale = 1) = 0;

  /// Everything a continued run needs to go on bit for bit, as named tensors ("m.encoder.layers.0.linear1.weight"), and
  /// the reverse. load_state throws Error, naming `origin`, if a tensor is missing or of another shape.
  [[nodiscard]] virtual NamedTensors state() const = 0;
  virtual void load_state(const NamedTensors& tensors, const std::string& origin) = 0;
};

/// Makes an optimizer of these parameters, whose buffer it shares.
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(const Parameters&, const OptimizerOptions&)>;
Registry<OptimizerFactory>& optimizers();

/// √Σ‖g‖² over all gradients, summed in double precision in an order that does not depend on the number of threads.
double global_norm(const std::vector<Tensor>& gradients);

/// The factor that brings gradients of this norm to at most `limit` (Pascanu et al. 2013, arXiv 1211.5063):
/// min(1, limit/norm); 1 if limit is 0.
double clip_scale(double norm, double limit);

}  // namespace plumb
