// Normalization of activations: the interface and the registry of norms.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/base/registry.h"
#include "plumb/nn/context.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// Normalizes an activation. x: (tokens, width) → (tokens, width). Except in evaluation, some norms use all tokens of
/// the batch; in evaluation each token is normalized independently, so that incremental decoding gives the same result.
class Norm {
 public:
  virtual ~Norm() = default;
  [[nodiscard]] virtual Tensor operator()(const Tensor& x, const ForwardContext& context) const = 0;

  /// Whether a training pass can be computed again in its backward pass (ForwardContext::recompute).
  [[nodiscard]] virtual bool repeatable() const { return true; }
};

/// Makes a norm whose parameters are named `prefix`.weight and so on.
using NormFactory =
    std::function<std::unique_ptr<Norm>(Parameters&, const std::string& prefix, int64_t width, double eps)>;
Registry<NormFactory>& norms();

}  // namespace plumb
